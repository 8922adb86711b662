// Checks what the checkers report for a run whose primary had continued alone and was lost: every
// acknowledged push is required unless no live process has recorded it.
#include "tests/sim/checks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace disttf::sim {
namespace {

// Processes.
constexpr std::uint64_t kPrimary = 1;  // continues alone
constexpr std::uint64_t kBackup = 2;   // has not received that view
constexpr std::uint64_t kWorker = 3;   // receives the answers
constexpr std::uint64_t kChief = 10;   // lets the primary continue alone
constexpr std::uint64_t kNextChief = 11;
constexpr std::initializer_list<std::uint64_t> kWhoKnow = {kPrimary, kWorker, kChief};

constexpr StateName kState{.lineage = 100, .generation = 1};
constexpr net::View kPair{.number = {.chief = kChief, .count = 2}, .primary = 0, .paired = true};
constexpr net::View kAlone{.number = {.chief = kChief, .count = 3}, .primary = 0};

// Range 0 of two. The pair answers a push, and then the primary alone answers another one.
class Story {
 public:
  explicit Story(bool sync = false) : is_sync_(sync) {
    Scenario scenario = plain_scenario(1);
    scenario.ps = 2;
    scenario.trainers = 1;
    scenario.config.train_steps = 10;
    scenario.config.ps_replicas = 2;
    scenario.config.sync_replicas = sync;
    complete(scenario);
    size_ = scenario.size;
    checks_.emplace(world_, scenario.config, size_, 2);
    tell(kChief, kPair.number, {kPrimary, kBackup});
    answer(kPair, 1, {kPrimary, kBackup, kWorker});
    tell(kChief, kAlone.number, {kPrimary});
    answer(kAlone, 2, {kPrimary, kWorker});
  }

  void tell(std::uint64_t chief, net::ViewNumber view, std::initializer_list<std::uint64_t> hosts) {
    checks_->witnesses().tells(chief, 0, view);
    for (const std::uint64_t host : hosts) {
      hear(host, view);
    }
  }
  void hear(std::uint64_t process, net::ViewNumber view) {
    checks_->witnesses().hears(process, 0, view);
  }
  void lose(std::initializer_list<std::uint64_t> processes) {
    for (const std::uint64_t process : processes) {
      checks_->witnesses().has_gone(process);
    }
  }
  // The next chief has received the pair's view, and the backup serves the range with `step`
  // pushes.
  void go_on_without_them(net::ViewNumber view = {.chief = kNextChief, .count = 3},
                          std::uint64_t step = 1) {
    hear(kNextChief, kPair.number);
    tell(kNextChief, view, {kBackup});
    checks_->host_was_promoted(0, kState, view, step);
    checks_->host_goes_on("ps 1", 0, kState, view, step, parameters_of(step));
    if (is_sync_) {
      checks_->host_acknowledges("ps 1", 0, kState, view, step);
    }
    result_ = step;
  }
  // Returns the violation that the checkers report at the end.
  [[nodiscard]] std::string violation() {
    if (!is_sync_) {
      checks_->result("worker 0", /*is_chief=*/true, result_, {kState, {}}, parameters_of(result_));
    }
    return world_.violation();
  }

 private:
  // Answers push number `step` with the parameters of that step.
  void answer(const net::View& view, std::uint64_t step,
              std::initializer_list<std::uint64_t> who_see_it) {
    const PushName push{.incarnation = kWorker, .sequence = step};
    checks_->host_answers(0, kState, view, step, push);
    if (is_sync_) {
      checks_->host_acknowledges("ps 0", 0, kState, view.number, step);
    }
    checks_->push_acknowledged(0, kState, step, push);
    for (const std::uint64_t process : who_see_it) {
      checks_->witnesses().has_seen(process, 0, kState, step);
    }
  }
  // Asynchronous training with SGD and rate 1: each push is a component.
  [[nodiscard]] std::vector<float> parameters_of(std::uint64_t step) const {
    std::vector<float> parameters(size_);
    for (std::uint64_t each = 1; each <= step; ++each) {
      parameters[each] = -1;
    }
    return parameters;
  }

  const bool is_sync_;
  World world_{1, false};
  std::size_t size_ = 0;
  std::uint64_t result_ = 0;  // the number of pushes in it
  std::optional<Checks> checks_;
};

TEST(LostAnswers, CountNoMoreOnceNoProcessHasRecordedThem) {
  for (const bool sync : {false, true}) {
    Story story(sync);
    story.lose(kWhoKnow);
    story.go_on_without_them();
    EXPECT_EQ(story.violation(), "");
  }
}

TEST(LostAnswers, CountWhereOneProcessIsLeftThatKnows) {
  for (const bool sync : {false, true}) {
    for (const std::uint64_t survivor : kWhoKnow) {
      Story story(sync);
      for (const std::uint64_t each : kWhoKnow) {
        if (each != survivor) {
          story.lose({each});
        }
      }
      story.go_on_without_them();
      EXPECT_NE(story.violation(), "") << survivor;
    }
  }
}

// The loss comes too late: the next primary already serves the range.
TEST(LostAnswers, CountWhereWhoKnewIsLostAfterwards) {
  Story story;
  story.lose({kPrimary, kChief});
  story.go_on_without_them();
  story.lose({kWorker});
  story.go_on_without_them({.chief = kNextChief, .count = 4});
  EXPECT_NE(story.violation(), "");
}

// A process also counts as informed if a chief that knew made the view that it received.
TEST(LostAnswers, CountWhereAProcessHasRecordedTheDecisionOfAnotherChief) {
  constexpr std::uint64_t kBetween = 12;
  for (const bool has_received : {false, true}) {
    Story story;
    if (has_received) {
      story.hear(kBetween, kAlone.number);
    }
    story.tell(kBetween, {.chief = kBetween, .count = 3}, {kBackup});
    story.lose(kWhoKnow);
    story.lose({kBetween});
    story.go_on_without_them();
    EXPECT_EQ(story.violation() != "", has_received);
  }
}

// A host that was frozen receives an older view late. No chief has chosen that view since.
TEST(LostAnswers, CountWhereAnOlderViewIsHeardOfLate) {
  Story story;
  story.lose(kWhoKnow);
  story.go_on_without_them(kPair.number);
  EXPECT_NE(story.violation(), "");
}

TEST(LostAnswers, CountWhereThePairGaveThem) {
  for (const bool sync : {false, true}) {
    Story story(sync);
    story.lose(kWhoKnow);
    story.go_on_without_them({.chief = kNextChief, .count = 3}, /*step=*/0);
    EXPECT_NE(story.violation(), "");
  }
}

}  // namespace
}  // namespace disttf::sim
