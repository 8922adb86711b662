#include "run/monitor/core/trace.h"

#include <gmock/gmock.h>

#include <array>
#include <map>
#include <nlohmann/json.hpp>

#include "run/monitor/core/trace_collector.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using Json = nlohmann::json;

constexpr std::int64_t kMicrosecond = 1000;
constexpr std::int64_t kStart = 1'000'000'000'000;  // of the first step, by the right time

// One ps and two workers, each with a clock of its own that may go ahead of the right time. A step
// takes 1000 us: parameters are under way for 20, then 80 of loading, 100 forward, 300 backward, 20
// for the gradient; the update takes 50 and begins when the last gradient is there.
struct Ahead {
  std::int64_t ps = 0;
  std::array<std::int64_t, 2> workers = {0, 0};
};

ProcessFacts with_clock(const char* name) {
  ProcessFacts facts;
  facts.clock = name;
  return facts;
}

class TraceTest : public testing::Test {
 protected:
  void tell(Trace& trace, std::uint64_t steps, const Ahead& ahead = {},
            const std::array<const char*, 3>& clocks = {"a", "a", "a"}, float too_long = 0) const {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      TrainerMetrics metrics{.task = cluster_.trainer(rank),
                             .process = with_clock(clocks[rank + 1]),
                             .isa = "avx2",
                             .step = trace.window().from + steps,
                             .samples = {}};
      for (std::uint64_t each = 0; each < steps; ++each) {
        metrics.traced.push_back(
            {.step = trace.window().from + each,
             .seconds = {0, 80e-6F, 100e-6F, 300e-6F, 10e-6F, 500e-6F, 10e-6F + too_long},
             .began = began(each) + 20 * kMicrosecond + ahead.workers[rank]});
      }
      trace.told(metrics);
    }
    PsMetrics metrics{.task = {.job = net::Job::kPs, .index = 0},
                      .process = with_clock(clocks[0]),
                      .step = trace.window().from + steps,
                      .replica_role = {},
                      .present = {},
                      .samples = {}};
    for (std::uint64_t each = 0; each < steps; ++each) {
      metrics.traced.push_back({.step = trace.window().from + each,
                                .apply = too_long > 0 ? 470e-6F + too_long : 50e-6F,
                                .arrived = {520e-6F, 530e-6F},
                                .began = began(each) + ahead.ps,
                                .waited = 530e-6F});
    }
    trace.told(metrics);
  }
  static std::int64_t began(std::uint64_t step) {
    return kStart + static_cast<std::int64_t>(step) * 1000 * kMicrosecond;
  }

  const net::Cluster cluster_{.ps = {{.host = "p", .port = 1}},
                              .workers = {{.host = "a", .port = 1}, {.host = "b", .port = 1}},
                              .chief = {},
                              .evaluators = {}};
};

Json event(const Json& trace, const std::string& name, int pid, int step) {
  for (const Json& each : trace["traceEvents"]) {
    if (each["name"] == name && each["pid"] == pid && each.contains("args") &&
        each["args"].value("step", -1) == step) {
      return each;
    }
  }
  ADD_FAILURE() << "no " << name << " of process " << pid << " in step " << step;
  return {{"ts", 0}, {"dur", 0}};
}

TEST_F(TraceTest, IsCompleteWhenAllHaveTold) {
  Trace trace(cluster_, {.from = 100, .count = 3});
  EXPECT_FALSE(trace.is_complete());
  EXPECT_TRUE(trace.empty());
  EXPECT_THAT(trace.missing(), ElementsAre("ps:0", "worker:0", "worker:1"));
  tell(trace, 2);
  EXPECT_FALSE(trace.is_complete()) << "a step is to come";
  tell(trace, 3);
  EXPECT_TRUE(trace.is_complete());
  EXPECT_THAT(trace.missing(), IsEmpty());
  EXPECT_FALSE(trace.empty());
}

// With --max_workers the cluster has workers that may never come.
TEST_F(TraceTest, ATrainerThatHasNeverTakenPartIsNotWaitedFor) {
  net::Cluster cluster = cluster_;
  net::open_to(cluster, 4);
  Trace trace(cluster, {.from = 100, .count = 3});
  EXPECT_THAT(trace.missing(), ElementsAre("ps:0", "worker:0", "worker:1", "worker:2", "worker:3"));
  trace.record_present({true, true, false, true});
  trace.record_present({true, true, false, false});  // worker 3 has gone since
  EXPECT_THAT(trace.missing(), ElementsAre("ps:0", "worker:0", "worker:1", "worker:3"));
  tell(trace, 3);
  EXPECT_THAT(trace.missing(), ElementsAre("worker:3"));
  EXPECT_FALSE(trace.is_complete());
  Trace of_two(cluster, {.from = 100, .count = 3});
  of_two.record_present({true, true, false, false});
  tell(of_two, 3);
  EXPECT_TRUE(of_two.is_complete());
}

TEST_F(TraceTest, ATaskThatHasMoreToTellIsWaitedFor) {
  Trace trace(cluster_, {.from = 100, .count = 3});
  tell(trace, 3);
  Trace other(cluster_, {.from = 100, .count = 3});
  other.told(TrainerMetrics{.task = cluster_.trainer(1),
                            .process = {},
                            .isa = {},
                            .step = 103,
                            .samples = {},
                            .has_more_traced = true});
  EXPECT_THAT(other.missing(), ElementsAre("ps:0", "worker:0", "worker:1"));
}

TEST_F(TraceTest, SlicesHaveTheTimesThatWereTold) {
  Trace trace(cluster_, {.from = 100, .count = 2});
  tell(trace, 2);
  const Json timeline = Json::parse(trace.json());
  // The first thing of all, the ps's parameters of step 100, is at 0.
  EXPECT_EQ(event(timeline, "step 100", 1, 100)["ts"], 0.0);
  EXPECT_EQ(event(timeline, "step 100", 1, 100)["dur"], 580.0);
  EXPECT_EQ(event(timeline, "gradients", 1, 101)["ts"], 1000.0);
  EXPECT_EQ(event(timeline, "apply", 1, 101)["ts"], 1530.0);
  EXPECT_EQ(event(timeline, "backward", 3, 101)["ts"], 1200.0);
  EXPECT_EQ(event(timeline, "backward", 3, 101)["dur"], 300.0);
  EXPECT_EQ(event(timeline, "wait", 3, 101)["dur"], 500.0);
  EXPECT_EQ(event(timeline, "gradient", 1, 100)["ts"], 500.0);
  EXPECT_EQ(event(timeline, "gradient", 1, 100)["dur"], 20.0);
  EXPECT_EQ(event(timeline, "parameters", 1, 101)["ts"], 1000.0);
  EXPECT_EQ(event(timeline, "parameters", 1, 101)["dur"], 20.0);
  EXPECT_EQ(timeline["otherData"]["clock_error_us"], 0.0);
}

// Slices of a thread lie in each other or beside each other: chrome's format knows nothing else.
void expect_nested(const Json& timeline) {
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
  for (const Json& each : timeline["traceEvents"]) {
    if (each["ph"] == "X") {
      const double from = each["ts"];
      EXPECT_GE(from, 0) << each;
      threads[{each["pid"], each["tid"]}].emplace_back(from, from + each["dur"].get<double>());
    }
  }
  EXPECT_EQ(threads.size(), 5U) << "updates, what travels to and from two workers, and their steps";
  constexpr double kRounded = 0.0011;  // both ends of a slice, to whole nanoseconds
  for (auto& [thread, slices] : threads) {
    std::ranges::sort(slices, [](const auto& one, const auto& other) {
      return one.first != other.first ? one.first < other.first : one.second > other.second;
    });
    std::vector<double> open;
    for (const auto& [from, until] : slices) {
      while (!open.empty() && open.back() <= from + kRounded) {
        open.pop_back();
      }
      EXPECT_TRUE(open.empty() || until <= open.back() + kRounded)
          << thread.first << " " << thread.second << " " << from;
      open.push_back(until);
    }
  }
}

TEST_F(TraceTest, SlicesOfAThreadNest) {
  Trace trace(cluster_, {.from = 100, .count = 5});
  tell(trace, 5, {.ps = 7'654'321, .workers = {-3'000'000, 12'345}}, {"a", "b", "c"});
  expect_nested(Json::parse(trace.json()));
}

// A float32 of half a second is exact to 30 ns: the parts of a step may be more than the whole.
TEST_F(TraceTest, SlicesOfLongStepsNestToo) {
  Trace trace(cluster_, {.from = 100, .count = 5});
  tell(trace, 5, {}, {"a", "a", "a"}, 100e-9F);
  expect_nested(Json::parse(trace.json()));
}

TEST_F(TraceTest, AnArrowGoesFromPushOverApplyToTheAnswer) {
  Trace trace(cluster_, {.from = 100, .count = 2});
  tell(trace, 2);
  std::map<int, std::map<std::string, Json>> flows;
  const Json timeline = Json::parse(trace.json());
  for (const Json& each : timeline["traceEvents"]) {
    if (each.contains("id")) {
      flows[each["id"]][each["ph"]] = each;
    }
  }
  ASSERT_EQ(flows.size(), 4U) << "two workers, two steps";
  const std::map<std::string, Json>& first = flows[1];
  EXPECT_EQ(first.at("s")["pid"], 2);
  EXPECT_EQ(first.at("s")["ts"], 500.0);
  EXPECT_EQ(first.at("t")["pid"], 1);
  EXPECT_EQ(first.at("t")["ts"], 530.0);
  EXPECT_EQ(first.at("f")["pid"], 2);
  EXPECT_EQ(first.at("f")["ts"], 1020.0);
  EXPECT_EQ(first.at("f")["bp"], "e");
  EXPECT_FALSE(flows[3].contains("f")) << "what came of the last step is not in the timeline";
}

// Clocks that are minutes apart: each step says so, to within what was under way.
TEST_F(TraceTest, ClocksAreSetByTheStepsThemselves) {
  Trace trace(cluster_, {.from = 100, .count = 5});
  tell(trace, 5, {.ps = 5'000'000'000, .workers = {-70'000'000'000, 3'000'000'000}},
       {"a", "b", "c"});
  // 20 us there and 20 back.
  EXPECT_THAT(trace.clock_error_seconds(), Optional(testing::DoubleNear(25e-6, 5.1e-6)));
  const Json timeline = Json::parse(trace.json());
  for (const int worker : {2, 3}) {
    EXPECT_NEAR(event(timeline, "backward", worker, 102)["ts"], 2200.0, 25.1);
  }
  EXPECT_EQ(timeline["otherData"]["clock_error_us"], *trace.clock_error_seconds() * 1e6);
}

TEST_F(TraceTest, AClockThatCannotBeComparedIsReported) {
  Trace trace(cluster_, {.from = 100, .count = 1});
  TrainerMetrics alone{.task = cluster_.trainer(0),
                       .process = with_clock("b"),
                       .isa = {},
                       .step = 101,
                       .samples = {}};
  alone.traced.push_back({.step = 100, .seconds = {}, .began = kStart});
  trace.told(alone);
  EXPECT_EQ(trace.clock_error_seconds(), std::nullopt);
  EXPECT_THAT(trace.json(), HasSubstr(R"("clock_error_us":null)"));
}

TEST_F(TraceTest, ManyTasksHaveFewerSteps) {
  EXPECT_EQ(Trace::most_steps(2, 1), StepWindow::kMost);
  EXPECT_EQ(Trace::most_steps(1000, 16), 11U);
}

// ------------------------------------------------------------------------------------- collecting

class TraceCollectorTest : public TraceTest {
 protected:
  static TraceCollector::Clock::time_point at(int time) {
    return TraceCollector::Clock::time_point(std::chrono::hours(1)) +
           std::chrono::milliseconds(time);
  }
  // 100 steps a second are seen; then it begins.
  void begin(std::uint64_t steps) {
    collector_.ask(steps);
    EXPECT_FALSE(collector_.look(1000, at(0)));
    EXPECT_FALSE(collector_.look(1050, at(500)));
    EXPECT_EQ(collector_.window(), StepWindow{});
    EXPECT_FALSE(collector_.look(1100, at(1000)));
  }
  void all_tell() {
    Trace told(cluster_, collector_.window());
    TrainerMetrics trainer{
        .task = {}, .process = {}, .isa = {}, .step = collector_.window().end(), .samples = {}};
    trainer.traced.push_back({.step = collector_.window().from, .seconds = {}});
    for (const std::size_t rank : {0U, 1U}) {
      trainer.task = cluster_.trainer(rank);
      collector_.told(trainer);
    }
    collector_.told(PsMetrics{.task = {.job = net::Job::kPs, .index = 0},
                              .process = {},
                              .step = collector_.window().end(),
                              .replica_role = {},
                              .present = {},
                              .samples = {}});
  }
  TraceCollector collector_{cluster_, 10'000};
};

TEST_F(TraceCollectorTest, ChoosesStepsThatAllWillKnowOfInTime) {
  begin(50);
  EXPECT_EQ(collector_.window(), (StepWindow{.from = 1402, .count = 50})) << "3 s ahead";
  EXPECT_FALSE(collector_.look(1200, at(2000)));
  all_tell();
  const auto result = collector_.look(1460, at(4600));
  ASSERT_TRUE(result && result->trace) << "all have reported";
  EXPECT_EQ(result->trace->window().from, 1402U);
  EXPECT_EQ(collector_.window(), StepWindow{}) << "no more steps are to be reported";
  EXPECT_FALSE(collector_.look(1500, at(5000)));
}

TEST_F(TraceCollectorTest, WhoDoesNotTellIsWaitedForAWhile) {
  begin(50);
  TrainerMetrics one{.task = cluster_.trainer(0), .process = {}, .isa = {}, .samples = {}};
  one.traced.push_back({.step = collector_.window().from, .seconds = {}});
  collector_.told(one);
  EXPECT_FALSE(collector_.look(1452, at(5000)));
  EXPECT_FALSE(collector_.look(2000, at(14'000)));
  const auto result = collector_.look(2100, at(15'000));
  ASSERT_TRUE(result && result->trace);
  EXPECT_THAT(result->trace->missing(), ElementsAre("ps:0", "worker:0", "worker:1"));
}

TEST_F(TraceCollectorTest, NoTaskHasReportedAnything) {
  begin(50);
  EXPECT_FALSE(collector_.look(1452, at(5000)));
  EXPECT_EQ(collector_.look(2100, at(15'000))->why_not,
            "no task has reported its steps; ask again");
}

TEST_F(TraceCollectorTest, ARunThatEndsTooSoonHasNone) {
  collector_.ask(50);
  EXPECT_FALSE(collector_.look(9000, at(0)));
  const auto result = collector_.look(9400, at(1000));
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->trace);
  EXPECT_EQ(result->why_not,
            "the run ends too soon: it has 600 steps left; 1202 pass until all tasks have the "
            "request, and the timeline needs 50");
}

TEST_F(TraceCollectorTest, ARunThatIsRolledBackHasToBeAskedAgain) {
  begin(50);
  collector_.roll_back();
  EXPECT_EQ(collector_.look(900, at(2000))->why_not,
            "the run was rolled back meanwhile; ask again");
  EXPECT_EQ(collector_.window(), StepWindow{});
}

TEST_F(TraceCollectorTest, TheEndOfTheRunIsTheEndOfIt) {
  EXPECT_FALSE(collector_.end());
  collector_.ask(50);
  EXPECT_EQ(collector_.end()->why_not, "the run has ended meanwhile");
  EXPECT_FALSE(collector_.end());
}

}  // namespace
}  // namespace disttf::roles
