// A trainer that dies between its pushes to two ps: one makes the step, the other lacks the
// gradient, so they are one step apart. The trainer's next process computes the gradient again from
// the older parameters, which the ps that is ahead has kept, and the run's result is bit-identical
// to an undisturbed one.
#include <array>
#include <atomic>
#include <csignal>
#include <future>
#include <ostream>

#include "tests/process/process_test.h"
#include "tests/process/relay.h"

namespace disttf::test_process {
namespace {

using net::FrameKind;
using net::Job;

// After the torn step, the chief requests a snapshot.
constexpr std::uint64_t kTornStep = 39;
// Over tcp, because half a frame is held back, and it must contain half a gradient.
const Words kRun = {"--train_steps=80", "--save_steps=10", "--print_weights_hash",
                    "--transport=tcp"};

// One event of the conversation: a relay's thread signals it and the test waits for it.
class Event {
 public:
  void happened() {
    if (!told_.exchange(true)) {
      promise_.set_value();
    }
  }
  [[nodiscard]] ::testing::AssertionResult wait(const char* what) {
    if (promise_.get_future().wait_for(kPatience) == std::future_status::ready) {
      return ::testing::AssertionSuccess();
    }
    return ::testing::AssertionFailure() << "did not happen in time: " << what;
  }

 private:
  std::atomic<bool> told_ = false;
  std::promise<void> promise_;
};

class TornStep : public ProcessTest {
 protected:
  // The part of the victim's push of kTornStep that reaches the ps that is left behind.
  enum class Part : std::uint8_t { kNothing, kHalf };

  // Tears the step of the victim's first process; all frames of its next process pass.
  Relay::Rule rule(std::size_t ps) {
    return [this, ps](const Passing& passing) {
      const net::FrameHeader& header = passing.header;
      const bool of_victim = passing.hello.from == victim_ &&
                             passing.hello.purpose == net::ChannelPurpose::kStep &&
                             passing.hello.incarnation == first_of(passing.hello);
      if (of_victim && passing.to_ps && ps == behind_ && header.step == kTornStep &&
          (header.kind == FrameKind::kPushPull || header.kind == FrameKind::kPush)) {
        held_.happened();
        return part_ == Part::kNothing ? 0 : net::kHeaderBytes + header.body_size / 2;
      }
      if (of_victim && !passing.to_ps && ps != behind_ && header.kind == FrameKind::kParameters &&
          header.step == kTornStep + 1) {
        made_.happened();
      }
      return whole(header);
    };
  }

  // Returns the incarnation of the victim's first process.
  std::uint64_t first_of(const net::Hello& hello) {
    std::uint64_t none = 0;
    incarnation_.compare_exchange_strong(none, hello.incarnation);
    return incarnation_;
  }

  void start(const Words& more) {
    for (const std::size_t ps : {0U, 1U}) {
      tasks_.ps.push_back(&run_task(cluster_, Job::kPs, ps, {relays_[ps].listen_flag()}));
    }
    // An elastic chief begins alone where the worker is not there yet, and may be done before it.
    Process& worker = run_task(cluster_, Job::kWorker, 1, kRun + more);
    for (Process* const ps : tasks_.ps) {
      ASSERT_TRUE(says(*ps, "worker 1 .*joined"));
    }
    tasks_.trainers = {&run_task(cluster_, Job::kWorker, 0, kRun + more), &worker};
  }

  void kill_between_its_pushes(Process& victim) {
    ASSERT_TRUE(held_.wait("one ps was sent the push, or half of it"));
    ASSERT_TRUE(made_.wait("the other ps made the step"));
    victim.send(SIGKILL);
    ASSERT_TRUE(killed(victim, SIGKILL));
  }

  void expect_undisturbed(const Words& more) {
    EXPECT_TRUE(all_exit(tasks_.all(), kExitDone));
    expect_weights_of_launch(tasks_.trainers, Words{"--workers=2"} + kRun + more);
  }

  // Set before the tasks start; then only the relays' threads read it.
  net::TaskId victim_{.job = Job::kWorker, .index = 1};
  std::size_t behind_ = 1;
  Part part_ = Part::kNothing;

  std::atomic<std::uint64_t> incarnation_ = 0;
  Event held_;
  Event made_;
  const ClusterOnLoopback cluster_{{.ps = 2, .workers = 2}};
  std::array<Relay, 2> relays_{Relay(cluster_, 0, rule(0)), Relay(cluster_, 1, rule(1))};
  Tasks tasks_;
};

struct Moment {
  const char* name;
  std::size_t worker;  // 0 is the chief
  std::size_t behind;  // the ps that lacks the push
  bool half;           // this ps received half of it
};

void PrintTo(const Moment& moment, std::ostream* out) { *out << moment.name; }

class TornStepAt : public TornStep, public ::testing::WithParamInterface<Moment> {};

TEST_P(TornStepAt, IsComputedAgainFromTheOlderParameters) {
  victim_.index = GetParam().worker;
  behind_ = GetParam().behind;
  part_ = GetParam().half ? Part::kHalf : Part::kNothing;
  start({});
  Process*& victim = tasks_.trainers[victim_.index];
  kill_between_its_pushes(*victim);
  victim = &run_task(cluster_, Job::kWorker, victim_.index, kRun);
  EXPECT_TRUE(says(*victim, "Training begins at global step " + std::to_string(kTornStep) + "$"))
      << "the task was killed at another moment";
  expect_undisturbed({});
}

INSTANTIATE_TEST_SUITE_P(Where, TornStepAt,
                         ::testing::Values(Moment{"WorkerPs1HasNothing", 1, 1, false},
                                           Moment{"WorkerPs1HasHalf", 1, 1, true},
                                           Moment{"WorkerPs0HasNothing", 1, 0, false},
                                           Moment{"ChiefPs1HasNothing", 0, 1, false},
                                           Moment{"ChiefPs0HasHalf", 0, 0, true}),
                         [](const auto& each) { return std::string(each.param.name); });

// The ps that is behind reschedules the lost micro-batches to the remaining worker.
TEST_F(TornStep, OfAnElasticWorkerIsMadeByTheOthers) {
  const Words elastic = {"--min_workers=1", "--micro_batches=4"};
  start(elastic);
  kill_between_its_pushes(*tasks_.trainers[1]);
  tasks_.trainers.pop_back();
  expect_undisturbed(elastic);
}

}  // namespace
}  // namespace disttf::test_process
