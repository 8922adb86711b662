// A timeline of a live run: `disttf trace`, and SIGUSR2 to a chief without a launch. The output is
// checked against Chrome's trace event format.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

// Slow enough that a timeline begins long before the end, and that steps are distinct. It begins as
// many steps ahead as pass in three seconds at the current pace; on a busy machine the pace may
// double meanwhile, which the delay keeps within bounds.
const Words kSteady = {"--train_steps=1000000", "--model=softmax", "--batch_size=200",
                       "--eval_every=0", "--debug_delay_ms=10"};

class TraceTest : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch"} + arguments + data_flags(), where_);
  }
  Process& trace(const Words& arguments) {
    return run("trace", Words{"trace"} + arguments, where_);
  }
  static Json read(const std::filesystem::path& path) {
    std::ifstream file(path);
    return Json::parse(file);
  }

  const Variables where_ = {{"XDG_RUNTIME_DIR", scratch().string()}};
};

// The required fields of each kind of event, and their types.
void expect_event(const Json& event) {
  const std::string kind = event.at("ph");
  EXPECT_TRUE(event.at("name").is_string()) << event;
  EXPECT_TRUE(event.at("pid").is_number_unsigned() && event.at("tid").is_number_unsigned())
      << event;
  if (kind == "M") {
    EXPECT_TRUE(event.at("args").is_object()) << event;
    return;
  }
  EXPECT_TRUE(event.at("cat").is_string()) << event;
  EXPECT_TRUE(event.at("ts").is_number() && event.at("ts").get<double>() >= 0) << event;
  if (kind == "X") {
    EXPECT_TRUE(event.at("dur").is_number() && event.at("dur").get<double>() >= 0) << event;
  } else {
    EXPECT_TRUE(kind == "s" || kind == "t" || kind == "f") << event;
    EXPECT_TRUE(event.at("id").is_number_unsigned()) << event;
  }
}

using Thread = std::pair<int, int>;  // process and thread

std::map<Thread, std::vector<Json>> slices_of(const Json& trace) {
  std::map<Thread, std::vector<Json>> threads;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      threads[{event["pid"], event["tid"]}].push_back(event);
    }
  }
  return threads;
}

// Slices are nested or disjoint.
void expect_nested(std::vector<Json> slices) {
  constexpr double kRounded = 0.0011;  // both ends are rounded to whole nanoseconds
  std::ranges::stable_sort(slices, [](const Json& one, const Json& other) {
    return std::pair(one["ts"].get<double>(), -one["dur"].get<double>()) <
           std::pair(other["ts"].get<double>(), -other["dur"].get<double>());
  });
  std::vector<double> open;
  for (const Json& slice : slices) {
    const double from = slice["ts"];
    const double until = from + slice["dur"].get<double>();
    while (!open.empty() && open.back() <= from + kRounded) {
      open.pop_back();
    }
    EXPECT_TRUE(open.empty() || until <= open.back() + kRounded) << slice;
    open.push_back(until);
  }
}

std::map<std::string, int> processes_of(const Json& trace) {
  std::map<std::string, int> processes;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("name") == "process_name") {
      processes[event["args"]["name"]] = event["pid"];
    }
  }
  return processes;
}

// Returns the steps of a thread's slices with this name.
std::set<std::uint64_t> steps_of(const std::vector<Json>& slices, const std::string& name) {
  std::set<std::uint64_t> steps;
  for (const Json& slice : slices) {
    if (slice["name"] == name) {
      steps.insert(slice["args"]["step"].get<std::uint64_t>());
    }
  }
  return steps;
}

// An arrow leaves a trainer before it arrives at the ps, and arrives before it comes back.
void expect_arrows(const Json& trace, std::size_t count) {
  std::map<std::uint64_t, std::map<std::string, double>> arrows;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.contains("id")) {
      arrows[event["id"]][event["ph"]] = event["ts"];
    }
  }
  EXPECT_EQ(arrows.size(), count);
  for (const auto& [id, ends] : arrows) {
    ASSERT_TRUE(ends.contains("s") && ends.contains("t")) << id;
    EXPECT_LE(ends.at("s"), ends.at("t")) << id;
    if (ends.contains("f")) {
      EXPECT_LE(ends.at("t"), ends.at("f")) << id;
    }
  }
}

void expect_timeline(const Json& trace, std::uint64_t from, std::size_t steps,
                     const std::vector<std::string>& ps, const std::vector<std::string>& trainers) {
  for (const Json& event : trace.at("traceEvents")) {
    expect_event(event);
  }
  std::set<std::uint64_t> all;
  for (std::uint64_t step = from; step < from + steps; ++step) {
    all.insert(step);
  }
  const std::map<std::string, int> processes = processes_of(trace);
  const std::map<Thread, std::vector<Json>> threads = slices_of(trace);
  for (const auto& [thread, slices] : threads) {
    expect_nested(slices);
  }
  for (const std::string& name : trainers) {
    ASSERT_TRUE(processes.contains(name)) << name;
    for (const char* stage : {"forward", "backward", "push"}) {
      EXPECT_EQ(steps_of(threads.at({processes.at(name), 0}), stage), all) << name << " " << stage;
    }
  }
  for (const std::string& name : ps) {
    ASSERT_TRUE(processes.contains(name)) << name;
    EXPECT_EQ(steps_of(threads.at({processes.at(name), 0}), "apply"), all) << name;
    for (int rank = 1; rank <= static_cast<int>(trainers.size()); ++rank) {
      const auto& travel = threads.at({processes.at(name), rank});
      EXPECT_EQ(steps_of(travel, "gradient"), all) << name << " " << rank;
      EXPECT_EQ(steps_of(travel, "parameters"), all) << name << " " << rank;
    }
  }
  expect_arrows(trace, steps * ps.size() * trainers.size());
}

TEST_F(TraceTest, OfALaunchHasEveryStepOfEveryTask) {
  Process& job = launch(kSteady + Words{"--ps=2", "--workers=2", "--log_every=1"});
  ASSERT_TRUE(says(job, "\\[worker:1\\] .*training step 3 done"));
  Process& command = trace({"--steps=40", "--output=t.json", "--json"});
  ASSERT_TRUE(exits(command, kExitDone));
  const Json told = Json::parse(command.standard_output());
  EXPECT_EQ(told["steps"], 40);
  EXPECT_EQ(told["missing"], Json::array());
  EXPECT_EQ(told["clock_error_seconds"], 0.0) << "one machine";
  const std::filesystem::path file(told["file"].get<std::string>());
  EXPECT_EQ(file, scratch() / "t.json");
  expect_timeline(read(file), told["from"], 40, {"ps:0", "ps:1"}, {"worker:0", "worker:1"});
  EXPECT_TRUE(says(job, "A timeline of 40 steps from [0-9]+ on is in .*disttf-trace-"));
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::temp_directory_path())) {
    EXPECT_THAT(entry.path().filename().string(),
                ::testing::Not(HasSubstr("disttf-trace-" + std::to_string(job.pid()))));
  }
  job.send(SIGINT);
  EXPECT_TRUE(exits(job, kExitInterrupted));
}

// An orchestrator can send this signal.
TEST_F(TraceTest, OfAClusterWithoutALaunchIsASignalToTheChief) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const std::filesystem::path train_dir = scratch() / "run";
  const Tasks tasks =
      run_cluster(cluster, kSteady + Words{"--train_dir=" + train_dir.string(), "--log_every=1"});
  ASSERT_TRUE(says(tasks.chief(), "training step 3 done"));
  tasks.chief().send(SIGUSR2);
  ASSERT_TRUE(says(tasks.chief(), "A timeline of 50 steps from [0-9]+ on is in"));
  const std::string path =
      captured(tasks.chief().standard_error(), "A timeline of 50 steps from [0-9]+ on is in (.*)");
  EXPECT_EQ(std::filesystem::path(path).parent_path(), train_dir / "traces");
  const Json trace = read(path);
  expect_timeline(trace, trace["otherData"]["from"], 50, {"ps:0"}, {"worker:0", "worker:1"});
}

// As on two machines: the second worker's clock is 5000 s ahead, and no task is configured with
// that.
TEST_F(TraceTest, ClocksThatDifferAreComparedByTheSteps) {
  const std::filesystem::path unshare = "/usr/bin/unshare";
  const Words apart = {"--time", "--monotonic=5000", "--fork", "--kill-child"};
  Process& attempt = run_program(unshare, apart + Words{"/bin/true"});
  if (attempt.wait(kSoon).exit_code != kExitDone) {
    ASSERT_EQ(std::getenv("DISTTF_REQUIRE_ENGINES"), nullptr)
        << "this process may not make a time namespace";
    GTEST_SKIP() << "this process may not make a time namespace: " << attempt.standard_error();
  }
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  const Words flags =
      kSteady + Words{"--log_every=1", "--train_dir=" + (scratch() / "run").string()};
  run_task(cluster, net::Job::kPs, 0, flags);
  Process& chief = run_task(cluster, net::Job::kWorker, 0, flags);
  run_program(unshare, apart + Words{disttf_binary(), "worker", "--task_index=1"} +
                           cluster.host_flags() + data_flags() + flags);
  ASSERT_TRUE(says(chief, "training step 3 done"));
  chief.send(SIGUSR2);
  ASSERT_TRUE(says(chief, "A timeline of 50 steps from [0-9]+ on is in"));
  const Json trace = read(captured(chief.standard_error(), "A timeline of 50 .* on is in (.*)"));
  expect_timeline(trace, trace["otherData"]["from"], 50, {"ps:0"}, {"worker:0", "worker:1"});
  // The uncertainty of the shortest round trip: less than the length of the timeline.
  const double error = trace["otherData"]["clock_error_us"];
  EXPECT_GT(error, 0);
  double end = 0;
  for (const Json& event : trace["traceEvents"]) {
    end = std::max(end, event.value("ts", 0.0));
  }
  EXPECT_LT(end, 5e9) << "the steps of a task are off by 5000 s";
  EXPECT_LT(error, end);
  RecordProperty("clock_error_us", std::to_string(error));
}

TEST_F(TraceTest, ARunThatEndsTooSoonSaysSo) {
  Process& job = launch({"--train_steps=100", "--debug_delay_ms=100", "--log_every=1"});
  ASSERT_TRUE(says(job, "training step 3 done"));
  Process& command = trace({"--steps=1000"});
  EXPECT_TRUE(exits(command, kExitError));
  EXPECT_TRUE(says(command, "no timeline: the run ends too soon: it has [0-9]+ steps left"));
  job.send(SIGINT);
}

TEST_F(TraceTest, WithoutALaunchThereIsNone) {
  Process& command = trace({});
  EXPECT_TRUE(exits(command, kExitError));
  EXPECT_TRUE(says(command, "no launch of this user is running"));
  Process& wrong = trace({"--steps=0"});
  EXPECT_TRUE(exits(wrong, kExitUsage));
  EXPECT_TRUE(says(wrong, "--steps: .*0.* 1 to 1000|--steps: .*1.*1000"));
}

TEST_F(TraceTest, AFileThatCannotBeWrittenIsNotLost) {
  Process& job = launch(kSteady + Words{"--log_every=1"});
  ASSERT_TRUE(says(job, "training step 3 done"));
  Process& command = trace({"--steps=2", "--output=/proc/no/such.json"});
  EXPECT_TRUE(exits(command, kExitError));
  ASSERT_TRUE(says(command,
                   "--output: cannot create a file in /proc/no: .*; the timeline "
                   "is in "));
  const std::string path = captured(command.standard_error(), "the timeline is in \"([^\"]*)\"");
  EXPECT_TRUE(std::filesystem::remove(path)) << path;
  job.send(SIGINT);
}

}  // namespace
}  // namespace disttf::test_process
