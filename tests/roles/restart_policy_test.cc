#include "roles/launch/core/restart_policy.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "roles/launch/core/fault_plan.h"
#include "roles/launch/core/supervisor.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Action = RestartPolicy::Action;
using Part = RestartPolicy::Part;

constexpr Ending kKilled{.signal = SIGKILL};
constexpr Ending kLost{.exit_code = kLostPeers};

// A ps, the chief and a worker.
class RestartPolicyTest : public testing::Test {
 protected:
  static constexpr std::size_t kPs = 0;
  static constexpr std::size_t kChief = 1;
  static constexpr std::size_t kWorker = 2;

  static RestartPolicy policy(const RestartOptions& options = {}, unsigned seed = 1) {
    return {options, {Part::kPs, Part::kChief, Part::kWorker}, std::mt19937_64(seed)};
  }
  // Of a task that dies as soon as it has been started.
  RestartPolicy::Decision ended(RestartPolicy& policy, std::size_t task, const Ending& ending) {
    policy.started(task, now_);
    return policy.ended(task, ending, now_);
  }
  RestartPolicy::TimePoint now_ = RestartPolicy::TimePoint(seconds(1000));
};

TEST_F(RestartPolicyTest, StartsATaskAgainThatWasKilled) {
  RestartPolicy rules = policy();
  const auto decision = ended(rules, kWorker, kKilled);
  EXPECT_EQ(decision.action, Action::kRestart);
  EXPECT_EQ(decision.sentence,
            "was killed by signal 9 (Killed); starting it again (1 of 10 restarts)");
  EXPECT_FALSE(rules.exit_code());
}

TEST_F(RestartPolicyTest, PlannedDeathsAreNotCounted) {
  RestartPolicy rules = policy({.max_restarts = 1});
  for (int death = 0; death < 3; ++death) {
    const auto decision = ended(rules, kWorker, {.signal = SIGKILL, .planned = true});
    EXPECT_EQ(decision.action, Action::kRestart);
    EXPECT_EQ(decision.sentence, "was killed by signal 9 (Killed) as planned; starting it again");
  }
  EXPECT_EQ(ended(rules, kWorker, kKilled).action, Action::kRestart);
  EXPECT_EQ(ended(rules, kWorker, kKilled).action, Action::kStop);
}

TEST_F(RestartPolicyTest, StartsATaskAgainWhoseCodeAsksForIt) {
  // 143: another process sent it a SIGTERM.
  for (const int code : {128, static_cast<int>(kLostPeers), static_cast<int>(kTerminated), 255}) {
    RestartPolicy rules = policy();
    const auto decision = ended(rules, kPs, {.exit_code = code});
    EXPECT_EQ(decision.action, Action::kRestart);
    EXPECT_EQ(decision.sentence, "ended with exit code " + std::to_string(code) +
                                     "; starting it again (1 of 10 restarts)");
  }
}

TEST_F(RestartPolicyTest, StartsATaskAgainThatWasLost) {
  RestartPolicy rules = policy({.max_restarts = 1});
  const auto decision = ended(rules, kPs, {.lost = true});
  EXPECT_EQ(decision.action, Action::kRestart);
  EXPECT_EQ(decision.sentence, "was lost; starting it again (1 of 1 restarts)");
  EXPECT_FALSE(rules.finished());
  EXPECT_EQ(ended(rules, kPs, {.lost = true}).action, Action::kStop);
  EXPECT_EQ(rules.exit_code(), kLostPeers);
}

TEST_F(RestartPolicyTest, EndsTheRunAtACodeThatIsForGood) {
  for (const int code : {1, 2, 3, 4, 126, 127}) {
    RestartPolicy rules = policy();
    const auto decision = ended(rules, kWorker, {.exit_code = code});
    EXPECT_EQ(decision.action, Action::kStop);
    EXPECT_EQ(decision.sentence,
              "ended with exit code " + std::to_string(code) + "; stopping the others");
    EXPECT_EQ(rules.exit_code(), code);
  }
}

TEST_F(RestartPolicyTest, SaysNothingOfRestartsThatDidNotMatter) {
  RestartPolicy rules = policy();
  static_cast<void>(ended(rules, kWorker, kKilled));
  EXPECT_EQ(ended(rules, kWorker, {.exit_code = kBadData}).sentence,
            "ended with exit code 3; stopping the others");
}

TEST_F(RestartPolicyTest, CountsTheRestartsOfAllTasksTogether) {
  RestartPolicy rules = policy({.max_restarts = 2});
  EXPECT_EQ(ended(rules, kWorker, kKilled).action, Action::kRestart);
  EXPECT_EQ(ended(rules, kPs, kLost).sentence,
            "ended with exit code 138; starting it again (2 of 2 restarts)");
  const auto decision = ended(rules, kChief, kKilled);
  EXPECT_EQ(decision.action, Action::kStop);
  EXPECT_EQ(decision.sentence,
            "was killed by signal 9 (Killed) after 2 of 2 restarts; stopping the others");
  EXPECT_EQ(rules.exit_code(), kLostPeers);
}

TEST_F(RestartPolicyTest, NeverRestartsWhenToldSo) {
  for (const RestartOptions& options :
       {RestartOptions{.on_failure = false}, RestartOptions{.max_restarts = 0}}) {
    RestartPolicy rules = policy(options);
    const auto decision = ended(rules, kPs, kKilled);
    EXPECT_EQ(decision.action, Action::kStop);
    EXPECT_EQ(decision.sentence, "was killed by signal 9 (Killed); stopping the others");
    EXPECT_EQ(rules.exit_code(), kLostPeers);
  }
}

// A ps and a worker end with 0 after the chief has said that the result is durable. A chief and a
// ps that are killed after that cannot be had again: the worker that they would need is gone.
TEST_F(RestartPolicyTest, NothingIsStartedAgainOnceThereIsAResult) {
  for (const std::size_t first : {kChief, kPs, kWorker}) {
    RestartPolicy rules = policy();
    EXPECT_EQ(ended(rules, first, {}).action, Action::kLeave);
    EXPECT_TRUE(rules.finished());
    for (const std::size_t task : {kPs, kChief, kWorker}) {
      const auto decision = ended(rules, task, kKilled);
      EXPECT_EQ(decision.action, Action::kLeave);
      EXPECT_EQ(decision.sentence, "was killed by signal 9 (Killed); the run was over already");
    }
    EXPECT_EQ(ended(rules, kWorker, {.exit_code = kBadData}).action, Action::kLeave);
    EXPECT_EQ(rules.exit_code(), kDone);
  }
}

TEST_F(RestartPolicyTest, AChiefThatFailsForGoodFailsTheRunEvenWhenThePsAreDone) {
  RestartPolicy rules = policy();
  static_cast<void>(ended(rules, kPs, {}));
  EXPECT_EQ(ended(rules, kChief, {.exit_code = kError}).action, Action::kStop);
  EXPECT_EQ(rules.exit_code(), kError);
}

TEST_F(RestartPolicyTest, NothingIsStartedAgainAfterAFailure) {
  RestartPolicy rules = policy();
  static_cast<void>(ended(rules, kWorker, {.exit_code = kUsage}));
  const auto decision = ended(rules, kPs, kKilled);
  EXPECT_EQ(decision.action, Action::kLeave);
  EXPECT_EQ(decision.sentence, "");
  EXPECT_EQ(ended(rules, kChief, {}).action, Action::kLeave);
  EXPECT_EQ(rules.exit_code(), kUsage) << "the first failure's";
}

TEST_F(RestartPolicyTest, NothingIsStartedAgainAfterAStop) {
  RestartPolicy rules = policy();
  rules.stop(kInterrupted);
  rules.stop(kTerminated);
  EXPECT_EQ(ended(rules, kWorker, kKilled).action, Action::kLeave);
  EXPECT_EQ(rules.exit_code(), kInterrupted);
}

TEST_F(RestartPolicyTest, AStopAfterTheResultIsNoFailure) {
  RestartPolicy rules = policy();
  static_cast<void>(ended(rules, kChief, {}));
  rules.stop(kInterrupted);
  EXPECT_EQ(rules.exit_code(), kDone);
}

// ---- delays ----

TEST_F(RestartPolicyTest, WaitsTwiceAsLongEachTimeUpToABound) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    RestartPolicy rules = policy({}, seed);
    for (const int ceiling : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
      const auto delay = ended(rules, kWorker, kKilled).delay;
      EXPECT_GE(delay, milliseconds(ceiling / 2));
      EXPECT_LE(delay, milliseconds(ceiling));
    }
  }
}

TEST_F(RestartPolicyTest, CountsTheDelaysOfEachTaskByItself) {
  RestartPolicy rules = policy();
  for (int each = 0; each < 5; ++each) {
    static_cast<void>(ended(rules, kWorker, kKilled));
  }
  EXPECT_LE(ended(rules, kPs, kKilled).delay, milliseconds(100));
}

TEST_F(RestartPolicyTest, ForgetsTheDelaysOfATaskThatHasLivedForLong) {
  RestartPolicy rules = policy();
  for (int each = 0; each < 5; ++each) {
    static_cast<void>(ended(rules, kWorker, kKilled));
  }
  rules.started(kWorker, now_);
  EXPECT_GE(rules.ended(kWorker, kKilled, now_ + milliseconds(9'999)).delay, milliseconds(1600));
  rules.started(kWorker, now_);
  EXPECT_LE(rules.ended(kWorker, kKilled, now_ + seconds(10)).delay, milliseconds(100));
}

TEST_F(RestartPolicyTest, TasksThatDieTogetherComeBackApart) {
  RestartPolicy rules = policy();
  std::vector<milliseconds::rep> delays;
  for (const std::size_t task : {kPs, kChief, kWorker}) {
    delays.push_back(ended(rules, task, kKilled).delay.count());
  }
  EXPECT_FALSE(delays[0] == delays[1] && delays[1] == delays[2]);
}

// Its results are in the log; the run is the trainers'.
TEST_F(RestartPolicyTest, AnEvaluatorsEndIsNeverTheRuns) {
  RestartPolicy rules({.max_restarts = 1}, {Part::kPs, Part::kChief, Part::kEvaluator},
                      std::mt19937_64(1));
  constexpr std::size_t kEvaluator = 2;
  EXPECT_EQ(ended(rules, kEvaluator, kKilled).action, Action::kRestart);
  const auto left = ended(rules, kEvaluator, kKilled);
  EXPECT_EQ(left.action, Action::kLeave);
  EXPECT_EQ(left.sentence, "was killed by signal 9 (Killed); the run goes on without it");
  EXPECT_EQ(ended(rules, kEvaluator, {.exit_code = kBadData}).action, Action::kLeave);
  EXPECT_EQ(ended(rules, kEvaluator, {}).action, Action::kLeave);
  EXPECT_FALSE(rules.finished());
  EXPECT_FALSE(rules.exit_code());
  static_cast<void>(ended(rules, kChief, {}));
  EXPECT_EQ(rules.exit_code(), kDone);
}

// A run that trains for days is not to end because its evaluator had to be started ten times.
TEST_F(RestartPolicyTest, TheEvaluatorsRestartsUseUpNoneOfTheRuns) {
  RestartPolicy rules({.max_restarts = 2}, {Part::kPs, Part::kChief, Part::kEvaluator},
                      std::mt19937_64(1));
  constexpr std::size_t kEvaluator = 2;
  EXPECT_EQ(ended(rules, kEvaluator, kLost).sentence,
            "ended with exit code 138; starting it again (1 of 2 restarts of the evaluator)");
  EXPECT_EQ(ended(rules, kEvaluator, kLost).action, Action::kRestart);
  EXPECT_EQ(ended(rules, kEvaluator, kLost).action, Action::kLeave);
  EXPECT_EQ(ended(rules, kPs, kKilled).sentence,
            "was killed by signal 9 (Killed); starting it again (1 of 2 restarts)");
  EXPECT_EQ(ended(rules, kChief, kKilled).action, Action::kRestart);
  EXPECT_EQ(ended(rules, kPs, kKilled).action, Action::kStop);
}

TEST_F(RestartPolicyTest, AProcessThatCannotBeMadeIsTriedAgainForAMinute) {
  RestartPolicy rules = policy({.max_restarts = 1});
  const auto begin = now_;
  int tries = 0;
  for (auto delay = rules.could_not_start(kWorker, now_); delay;
       delay = rules.could_not_start(kWorker, now_)) {
    EXPECT_GE(*delay, milliseconds(50));
    EXPECT_LE(*delay, seconds(5));
    now_ += *delay;
    ++tries;
  }
  EXPECT_GE(now_ - begin, kStartPatience);
  EXPECT_LE(now_ - begin, kStartPatience + seconds(5));
  EXPECT_LT(tries, 30);
  EXPECT_EQ(ended(rules, kPs, kKilled).action, Action::kRestart) << "no restart was counted";
}

TEST_F(RestartPolicyTest, AProcessThatWasMadeHasAnotherMinute) {
  RestartPolicy rules = policy();
  EXPECT_TRUE(rules.could_not_start(kWorker, now_));
  now_ += seconds(59);
  rules.started(kWorker, now_);
  now_ += seconds(10);
  EXPECT_TRUE(rules.could_not_start(kWorker, now_));
}

// Records of the chief's processes.

constexpr pid_t kFirstChief = 100;
constexpr pid_t kNextChief = 101;

TEST(ReportingChief, TrainsOnceItsProcessHasReported) {
  ReportingChief chief;
  EXPECT_FALSE(chief.trains(kFirstChief));
  EXPECT_FALSE(chief.trains(-1));
  EXPECT_TRUE(chief.take(kFirstChief, kFirstChief));
  EXPECT_TRUE(chief.trains(kFirstChief));
}

TEST(ReportingChief, ALateRecordOfItsPredecessorDoesNotCount) {
  ReportingChief chief;
  EXPECT_TRUE(chief.take(kFirstChief, kFirstChief));
  EXPECT_FALSE(chief.take(kFirstChief, kNextChief));
  EXPECT_FALSE(chief.trains(kNextChief)) << "it does not handle the signals yet";
  EXPECT_TRUE(chief.take(kNextChief, kNextChief));
  EXPECT_FALSE(chief.take(kFirstChief, kNextChief));
  EXPECT_TRUE(chief.trains(kNextChief));
}

TEST(ReportingChief, TheLastRecordsOfAChiefThatHasEndedCount) {
  ReportingChief chief;
  EXPECT_TRUE(chief.take(kFirstChief, -1));
  EXPECT_FALSE(chief.trains(-1));
  EXPECT_FALSE(chief.trains(kNextChief));
}

using Kind = ProcessFault::Kind;

const std::vector<std::size_t> kTasks = {0, 1, 2, 5};

std::vector<ProcessFault> faults_until(std::uint64_t step, const ChaosOptions& options) {
  FaultPlan plan(options, kTasks);
  std::vector<ProcessFault> all = plan.take_until(0);
  for (const ProcessFault& fault : plan.take_until(step)) {
    all.push_back(fault);
  }
  return all;
}

TEST(FaultPlanTest, IsAFunctionOfTheSeed) {
  const ChaosOptions options{.seed = 7, .per_1000 = 50};
  EXPECT_EQ(faults_until(2000, options), faults_until(2000, options));
  EXPECT_NE(faults_until(2000, options), faults_until(2000, {.seed = 8, .per_1000 = 50}));
}

TEST(FaultPlanTest, HasTheRateThatItWasGiven) {
  EXPECT_TRUE(faults_until(10'000, {.seed = 7, .per_1000 = 0}).empty());
  EXPECT_EQ(faults_until(9'999, {.seed = 7, .per_1000 = 1000}).size(), 10'000U);
  // 500 are expected, with a standard deviation of 22.
  const std::size_t some = faults_until(10'000, {.seed = 7, .per_1000 = 50}).size();
  EXPECT_GT(some, 400U);
  EXPECT_LT(some, 600U);
}

TEST(FaultPlanTest, HitsEveryTaskInBothWays) {
  std::array<std::array<int, 2>, 6> hits{};
  for (const ProcessFault& fault : faults_until(999, {.seed = 7, .per_1000 = 1000})) {
    ++hits.at(fault.task).at(fault.kind == Kind::kKill ? 0 : 1);
  }
  for (const std::size_t task : kTasks) {
    EXPECT_GT(hits.at(task)[0], 50);
    EXPECT_GT(hits.at(task)[1], 50);
  }
  EXPECT_EQ(hits[3], (std::array{0, 0})) << "it is not among them";
}

TEST(FaultPlanTest, FreezesForAtMostTwoSeconds) {
  for (const ProcessFault& fault : faults_until(999, {.seed = 7, .per_1000 = 1000})) {
    if (fault.kind == Kind::kFreeze) {
      EXPECT_GE(fault.frozen_for.count(), 50);
      EXPECT_LE(fault.frozen_for.count(), 2000);
    } else {
      EXPECT_EQ(fault.frozen_for.count(), 0);
    }
  }
}

// However coarse the reports of the run's progress are.
TEST(FaultPlanTest, GivesEachFaultOnceInItsOrder) {
  const ChaosOptions options{.seed = 7, .per_1000 = 100};
  FaultPlan plan(options, kTasks);
  std::vector<ProcessFault> taken;
  for (const std::uint64_t step : {0U, 1U, 400U, 300U, 400U, 401U, 1000U}) {
    for (const ProcessFault& fault : plan.take_until(step)) {
      EXPECT_LE(fault.step, step);
      taken.push_back(fault);
    }
  }
  EXPECT_EQ(taken, faults_until(1000, options));
}

TEST(FaultPlanTest, SkipsWhatLiesBeforeTheRunsFirstStep) {
  FaultPlan plan({.seed = 7, .per_1000 = 1000}, kTasks);
  const std::vector<ProcessFault> first = plan.take_until(600);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].step, 600U);
}

}  // namespace
}  // namespace disttf::roles
