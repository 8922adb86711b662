// Attribution of stragglers: one task of a real cluster is slowed down in one stage, and the
// chief's records must name that task and that stage. A seed selects the cluster, the task, the ps
// at the other end and the slowdown.
//
// Runs six runs, one of each kind; DISTTF_SLOW_STAGES=50 runs all fifty. DISTTF_SLOW_STAGES_SEED is
// the first run's seed. The test prints each run's fault and the named task.
//
// The tasks share the machine, which may have fewer processors than tasks, so the other stages
// vary, too. Therefore the injected faults are larger: a mean delay of 30 to 80 ms, or a link on
// which a gradient or its parameters take 40 to 120 ms, where a step takes about 10 ms; or 1 ms in
// 8 to 16 of a processor for a trainer, in 6 to 12 for a ps.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/process/cpu_quota.h"
#include "tests/process/process_test.h"
#include "tests/process/relay.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using net::Job;
using nlohmann::json;

enum class Kind : std::uint8_t {
  kDelay,    // a trainer's gradients are late: --debug_delay_ms
  kQuota,    // a trainer has a share of a processor
  kPush,     // the link from a trainer to a ps is slow
  kPull,     // the link from a ps to a trainer is slow
  kPsQuota,  // one of two ps has a share of a processor
  kLonePs    // the only ps has it, from some time on: compared with its earlier self
};
constexpr unsigned kKinds = 6;
// In the six runs from this seed on, the slow link is at the first of two ps, whose parameters are
// received while those of the other wait.
constexpr unsigned kFirstSeed = 19;

// The number of successive critical paths that must name the same task. The log requires six.
constexpr std::size_t kInARow = 3;
// The polling interval of the records, which are written once a second.
constexpr milliseconds kLook{50};
// A step of about 10 ms of a single trainer: one thread, because there are more tasks than
// processors.
const Words kRun = {"--train_steps=1000000000", "--transport=tcp", "--threads=1", "--log_every=0"};
const Words kComputes = {"--hidden_units=256", "--batch_size=300"};
// The kernel notices an exhausted quota at its next tick, every 4 ms, or at a system call: with
// computations much longer than that, the computation is interrupted.
const Words kComputesLong = {"--hidden_units=256", "--batch_size=2000"};
// Gives a ps work: 3 MB of gradients from each trainer, and little to compute.
const Words kMoves = {"--hidden_units=1000", "--batch_size=20"};
constexpr double kBytes = 4.0 * (784 * 256 + 256 + 256 * 10 + 10);  // the gradient of kComputes

// The random draws of a run: the same for the same seed.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}
  // Draws from `from` to `to`, both included.
  unsigned operator()(unsigned from, unsigned to) {
    return from + static_cast<unsigned>(random_() % (to - from + 1));
  }

 private:
  std::mt19937 random_;
};

// The injected fault, and the expected record.
struct Fault {
  std::string what;
  std::string task;
  std::vector<std::string> stages;  // any of them is right
};

std::string name_of(const net::TaskId& task) {
  return std::string(net::job_name(task.job)) + ":" + std::to_string(task.index);
}

// A run with one slow task.
struct Slowed {
  Slowed(const ClusterSize& size, Words of_all)
      : cluster(size), flags(std::move(of_all)), of_trainers(cluster.tasks().trainer_count()) {}

  ClusterOnLoopback cluster;
  Words flags;
  std::vector<Words> of_trainers;  // by rank: additional flags
  std::unique_ptr<Relay> relay;    // in front of the ps `relayed`
  std::size_t relayed = 0;
  Tasks tasks;
  Fault fault;
  std::size_t before = 0;  // critical paths before the fault
};

class SlowStages : public ProcessTest {
 protected:
  void make_runs(Kind kind);
  // Makes the run of the seed and returns whether the right task and stage were named.
  [[nodiscard]] bool is_named(Kind kind, unsigned seed);

 private:
  void start(Slowed& run) {
    run.flags = run.flags + Words{"--train_dir=" + train_dir().string()};
    for (std::size_t ps = 0; ps < run.cluster.tasks().ps.size(); ++ps) {
      const bool is_relayed = run.relay && ps == run.relayed;
      run.tasks.ps.push_back(&run_task(run.cluster, Job::kPs, ps,
                                       is_relayed ? Words{run.relay->listen_flag()} : Words{}));
    }
    for (std::size_t rank = 0; rank < run.of_trainers.size(); ++rank) {
      const net::TaskId task = run.cluster.tasks().trainer(rank);
      run.tasks.trainers.push_back(
          &run_task(run.cluster, task.job, task.index, run.flags + run.of_trainers[rank]));
    }
  }

  void start_with(Kind kind, Draw& draw, Slowed& run);
  void start_delayed(Draw& draw, Slowed& run);
  void start_with_quota(Draw& draw, Slowed& run);
  void start_behind_slow_cable(Draw& draw, Slowed& run, bool to_ps);
  void start_with_slow_ps(Draw& draw, Slowed& run);
  void start_and_slow_lone_ps(Draw& draw, Slowed& run);
  void hold(Process& task, unsigned of) {
    std::string why;
    quota_ = CpuQuota::create(of, why);
    if (!quota_) {
      throw std::runtime_error(why);
    }
    quota_->hold(task.pid());
  }

  // Returns the records' critical paths, from the first one on.
  [[nodiscard]] std::vector<json> critical_paths() const {
    std::vector<json> all;
    if (!std::filesystem::exists(train_dir() / "records")) {
      return all;
    }
    for (const auto& file : std::filesystem::directory_iterator(train_dir() / "records")) {
      std::ifstream lines(file.path());
      for (std::string line; std::getline(lines, line);) {
        json record = json::parse(line, nullptr, /*allow_exceptions=*/false);
        if (record.is_object() && record["kind"] == "frontier") {
          all.push_back(std::move(record));
        }
      }
    }
    return all;
  }
  // Returns "slowest" of the first kInARow critical paths, after the first `before`, that name the
  // same task; empty if there are none in time.
  [[nodiscard]] std::vector<json> settled(std::size_t before) const {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (std::chrono::steady_clock::now() < deadline) {
      std::vector<json> row;
      const std::vector<json> all = critical_paths();
      for (std::size_t each = before; each < all.size(); ++each) {
        const json& slowest = all[each]["slowest"];
        if (slowest.is_null() || (!row.empty() && row.front()["task"] != slowest["task"])) {
          row.clear();
        }
        if (slowest.is_object()) {
          row.push_back(slowest);
        }
        if (row.size() == kInARow) {
          return row;
        }
      }
      std::this_thread::sleep_for(kLook);
    }
    return {};
  }

  void end(const Slowed& run) {
    for (Process* task : run.tasks.all()) {
      task->send(SIGKILL);
    }
    for (Process* task : run.tasks.all()) {
      task->wait();
    }
    quota_.reset();
    std::filesystem::remove_all(train_dir());
  }

  [[nodiscard]] std::filesystem::path train_dir() const { return scratch() / "train"; }

  std::unique_ptr<CpuQuota> quota_;
};

void SlowStages::start_with(Kind kind, Draw& draw, Slowed& run) {
  switch (kind) {
    case Kind::kDelay:
      return start_delayed(draw, run);
    case Kind::kQuota:
      return start_with_quota(draw, run);
    case Kind::kPush:
    case Kind::kPull:
      return start_behind_slow_cable(draw, run, kind == Kind::kPush);
    case Kind::kPsQuota:
      return start_with_slow_ps(draw, run);
    case Kind::kLonePs:
      return start_and_slow_lone_ps(draw, run);
  }
}

// Each step draws a new delay, half of the maximum in the mean.
void SlowStages::start_delayed(Draw& draw, Slowed& run) {
  const unsigned rank = draw(0, static_cast<unsigned>(run.of_trainers.size() - 1));
  const unsigned delay = draw(60, 160);
  run.of_trainers[rank] = {"--debug_delay_ms=" + std::to_string(delay)};
  run.fault = {.what = "a delay of up to " + std::to_string(delay) + " ms",
               .task = name_of(run.cluster.tasks().trainer(rank)),
               .stages = {"backward"}};
  start(run);
}

// Slows the computation: the quota may end in the forward or in the backward pass.
void SlowStages::start_with_quota(Draw& draw, Slowed& run) {
  const unsigned rank = draw(0, static_cast<unsigned>(run.of_trainers.size() - 1));
  // Less than the processors' fair share where a few other processes compute: a fair share is no
  // fault.
  const unsigned of = draw(8, 16);
  run.fault = {.what = "1 ms of " + std::to_string(of) + " ms of a processor",
               .task = name_of(run.cluster.tasks().trainer(rank)),
               .stages = {"forward", "backward"}};
  start(run);
  hold(*run.tasks.trainers[rank], of);
}

void SlowStages::start_behind_slow_cable(Draw& draw, Slowed& run, bool to_ps) {
  const unsigned rank = draw(0, static_cast<unsigned>(run.of_trainers.size() - 1));
  const auto ps = static_cast<unsigned>(run.cluster.tasks().ps.size());
  run.relayed = draw(0, ps - 1);
  const unsigned takes = draw(40, 120);
  const net::TaskId slow = run.cluster.tasks().trainer(rank);
  const double pace = kBytes / ps * 1000 / takes;
  run.relay = std::make_unique<Relay>(
      run.cluster, run.relayed, [](const Passing& passing) { return whole(passing.header); },
      [slow, to_ps, pace](const Passing& passing) {
        const bool is_it = passing.hello.from == slow && passing.to_ps == to_ps &&
                           passing.hello.purpose == net::ChannelPurpose::kStep;
        return is_it ? pace : 0;
      });
  run.fault = {.what = "a cable " + std::string(to_ps ? "to" : "from") + " ps " +
                       std::to_string(run.relayed) + " of " + std::to_string(ps) + " that takes " +
                       std::to_string(takes) + " ms",
               .task = name_of(slow),
               .stages = {to_ps ? "push" : "pull"}};
  start(run);
}

// The ps both receives the gradients and makes the step.
void SlowStages::start_with_slow_ps(Draw& draw, Slowed& run) {
  const unsigned slow = draw(0, static_cast<unsigned>(run.cluster.tasks().ps.size() - 1));
  const unsigned of = draw(6, 12);
  run.fault = {.what = "1 ms of " + std::to_string(of) + " ms of a processor",
               .task = "ps:" + std::to_string(slow),
               .stages = {"receive", "apply"}};
  start(run);
  hold(*run.tasks.ps[slow], of);
}

void SlowStages::start_and_slow_lone_ps(Draw& draw, Slowed& run) {
  const unsigned of = draw(6, 12);
  run.fault = {.what = "from some moment on 1 ms of " + std::to_string(of) + " ms of a processor",
               .task = "ps:0",
               .stages = {"receive", "apply"}};
  start(run);
  // First waits for critical paths of the ps without the limit, for comparison.
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (critical_paths().size() < 2 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLook);
  }
  hold(*run.tasks.ps[0], of);
  run.before = critical_paths().size();
}

// Returns the cluster size for this kind of run.
ClusterSize size_for(Kind kind, Draw& draw) {
  if (kind == Kind::kLonePs || kind == Kind::kPsQuota) {
    return {.ps = kind == Kind::kLonePs ? 1U : 2U, .workers = draw(2, 3)};
  }
  const unsigned ps = draw(1, 2);
  return {.ps = ps, .workers = draw(2, 3)};
}

const Words& model_for(Kind kind) {
  const bool is_ps = kind == Kind::kPsQuota || kind == Kind::kLonePs;
  return is_ps ? kMoves : kind == Kind::kQuota ? kComputesLong : kComputes;
}

bool is_right(const Fault& fault, const std::vector<json>& row) {
  return !row.empty() && std::ranges::all_of(row, [&fault](const json& slowest) {
    return slowest["task"] == fault.task &&
           std::ranges::count(fault.stages, slowest["stage"].get<std::string>()) == 1;
  });
}

void print(unsigned seed, const Fault& fault, std::size_t trainers, const std::vector<json>& row) {
  std::cout << "seed " << seed << ": " << fault.task << " of " << trainers << " trainers has "
            << fault.what << ". Named:";
  for (const json& slowest : row) {
    std::cout << " " << slowest["task"].get<std::string>() << " "
              << slowest["stage"].get<std::string>() << " "
              << std::lround(100 * slowest["slower"].get<double>()) << " %,";
  }
  std::cout << (is_right(fault, row) ? " right" : " wrong") << std::endl;
}

bool SlowStages::is_named(Kind kind, unsigned seed) {
  Draw draw(seed);
  Slowed run(size_for(kind, draw), kRun + model_for(kind));
  start_with(kind, draw, run);
  const std::vector<json> row = settled(run.before);
  print(seed, run.fault, run.of_trainers.size(), row);
  const bool right = is_right(run.fault, row);
  if (!right) {
    std::cout << "All critical paths: " << json(critical_paths()).dump() << std::endl;
  }
  end(run);
  return right;
}

// All requested runs must be right. The few of an ordinary test run share their processors with
// other tests: a wrong one is repeated once, and must then be right.
void SlowStages::make_runs(Kind kind) {
  const unsigned first = number_from_variable("DISTTF_SLOW_STAGES_SEED", kFirstSeed);
  const unsigned runs = number_from_variable("DISTTF_SLOW_STAGES", kKinds);
  unsigned made = 0;
  unsigned right = 0;
  for (auto each = static_cast<unsigned>(kind); each < runs; each += kKinds) {
    const unsigned seed = first + each;
    const bool is_right = is_named(kind, seed) || (runs <= kKinds && is_named(kind, seed));
    EXPECT_TRUE(is_right) << "seed " << seed;
    ++made;
    right += is_right ? 1U : 0U;
  }
  std::cout << right << " of " << made << " right" << std::endl;
}

// Returns true if the test was skipped.
bool lacks_quota() {
  std::string why;
  if (CpuQuota::create(2, why)) {
    return false;
  }
  test_support::skip_without_engine(why);
  return true;
}

TEST_F(SlowStages, ATrainerWhoseGradientsAreDelayedIsNamed) { make_runs(Kind::kDelay); }
TEST_F(SlowStages, ATrainerWithACpuQuotaIsNamed) {
  if (!lacks_quota()) {
    make_runs(Kind::kQuota);
  }
}
TEST_F(SlowStages, ATrainerThatPushesOverASlowCableIsNamed) { make_runs(Kind::kPush); }
TEST_F(SlowStages, ATrainerThatPullsOverASlowCableIsNamed) { make_runs(Kind::kPull); }
TEST_F(SlowStages, OneOfTwoPsWithACpuQuotaIsNamed) {
  if (!lacks_quota()) {
    make_runs(Kind::kPsQuota);
  }
}
TEST_F(SlowStages, TheOnlyPsIsNamedWhenItGetsACpuQuota) {
  if (!lacks_quota()) {
    make_runs(Kind::kLonePs);
  }
}

}  // namespace
}  // namespace disttf::test_process
