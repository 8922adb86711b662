// --ps_replicas 2: a ps is killed, the run continues with the other host of its ranges, and the
// restarted ps is filled again meanwhile. No acknowledged update is lost and none is applied twice.
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <iostream>
#include <numeric>
#include <regex>

#include "tests/process/process_test.h"
#include "tests/process/relay.h"

namespace disttf::test_process {
namespace {

using net::Job;

// Four by default; set a larger number, e.g. 50, by hand.
std::size_t kill_count() {
  const char* text = std::getenv("DISTTF_REPLICA_KILLS");
  return text != nullptr ? std::stoul(text) : 4;
}

// Returns the captured numbers of all matching lines in the process's log.
std::vector<std::uint64_t> numbers_in(const Process& process, const std::string& pattern) {
  const std::string text = process.standard_error();
  const std::regex regex(pattern);
  std::vector<std::uint64_t> numbers;
  for (std::sregex_iterator each(text.begin(), text.end(), regex), end; each != end; ++each) {
    numbers.push_back(std::stoull((*each)[1]));
  }
  return numbers;
}

std::uint64_t sum_of(const Process& process, const std::string& pattern) {
  const auto numbers = numbers_in(process, pattern);
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

// Returns the peak resident memory of a process, in bytes.
std::uint64_t memory_of(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) {
      return std::stoull(line.substr(6)) * 1024;
    }
  }
  return 0;
}

const Words kAsync = {"--sync_replicas=false", "--debug_delay_ms=20"};

class Replicas : public ProcessTest {
 protected:
  void start(std::size_t ps, const Words& flags) {
    cluster_.emplace(ClusterSize{.ps = ps, .workers = 3});
    flags_ = flags + Words{"--ps_replicas=2", "--log_every=1", "--peer_timeout=20"};
    tasks_ = run_cluster(*cluster_, flags_);
    pairs_.assign(ps, 0);
    all_ps_ = tasks_.ps;
    for (std::size_t range = 0; range < ps; ++range) {
      ASSERT_TRUE(is_paired_again(range));
    }
  }

  // Waits until the range has two copies again after a loss.
  ::testing::AssertionResult is_paired_again(std::size_t range) {
    ++pairs_[range];
    return says_times(tasks_.chief(), pairs_[range],
                      "range " + std::to_string(range) + ": view .* with a backup");
  }

  // Kills one ps at a time, after all ranges have two copies; at a different point of the run each
  // time.
  void kill_and_restart(std::size_t kills) {
    for (std::size_t kill = 0; kill < kills; ++kill) {
      const std::size_t victim = kill % tasks_.ps.size();
      steps_ += 20 + 7 * kill % 13;
      ASSERT_TRUE(says_times(*tasks_.trainers[2], steps_, "global step: "));
      tasks_.ps[victim]->send(SIGKILL);
      ASSERT_TRUE(killed(*tasks_.ps[victim], SIGKILL));
      tasks_.ps[victim] = &run_task(*cluster_, Job::kPs, victim, flags_);
      all_ps_.push_back(tasks_.ps[victim]);
      ASSERT_TRUE(is_paired_again(victim));
      ASSERT_TRUE(is_paired_again((victim + tasks_.ps.size() - 1) % tasks_.ps.size()));
    }
  }

  // Starts two ps and three asynchronous workers; `relays`: in front of each ps, or null.
  void start_behind(const std::array<Relay*, 2>& relays) {
    flags_ = kAsync + steps_for(0) + Words{"--ps_replicas=2", "--log_every=1", "--transport=tcp"};
    for (const std::size_t index : {0U, 1U}) {
      tasks_.ps.push_back(&start_ps(index, relays.at(index)));
    }
    for (std::size_t index = 0; index < 3; ++index) {
      tasks_.trainers.push_back(&run_task(*cluster_, Job::kWorker, index, flags_));
    }
    pairs_.assign(2, 0);
    ASSERT_TRUE(is_paired_again(0));
    ASSERT_TRUE(is_paired_again(1));
  }

  Process& start_ps(std::size_t index, const Relay* relay) {
    const Words own = relay != nullptr ? Words{relay->listen_flag()} : Words{};
    all_ps_.push_back(&run_task(*cluster_, Job::kPs, index, flags_ + own));
    return *all_ps_.back();
  }

  void kill_ps_0_behind(const std::array<Relay*, 2>& relays) {
    tasks_.ps[0]->send(SIGKILL);
    ASSERT_TRUE(killed(*tasks_.ps[0], SIGKILL));
    tasks_.ps[0] = &start_ps(0, relays[0]);
    ASSERT_TRUE(is_paired_again(0));
    ASSERT_TRUE(is_paired_again(1));
    ASSERT_TRUE(all_exit(tasks_.all(), kExitDone));
    expect_never_rolled_back();
    expect_each_applied_once(1);
  }

  void expect_never_rolled_back() {
    for (Process* trainer : tasks_.trainers) {
      EXPECT_EQ(count_of(trainer->standard_error(), "joining the run again"), 0U);
    }
    for (const Process* ps : all_ps_) {
      EXPECT_EQ(count_of(ps->standard_error(), "generation 2"), 0U);
    }
  }

  // Expects that each acknowledged gradient was applied once, and no other.
  void expect_each_applied_once(std::uint64_t gradients_of_a_step) {
    for (std::size_t range = 0; range < tasks_.ps.size(); ++range) {
      const std::string name = "range " + std::to_string(range) + ": ([0-9]+) gradients ";
      std::uint64_t acknowledged = 0;
      for (const Process* trainer : tasks_.trainers) {
        acknowledged += sum_of(*trainer, name + "acknowledged");
      }
      std::uint64_t applied = 0;
      for (const Process* ps : all_ps_) {
        applied += sum_of(*ps, name + "applied");
      }
      EXPECT_EQ(acknowledged, applied) << "range " << range;
      EXPECT_EQ(applied, train_steps_ * gradients_of_a_step) << "range " << range;
    }
  }

  // Expects the result of an undisturbed run.
  void expect_undisturbed(const Words& steps) {
    ASSERT_TRUE(all_exit(tasks_.all(), kExitDone));
    expect_weights_of_launch(tasks_.trainers, Words{"--workers=3", "--ps=2"} + steps);
  }

  // Prints, for information, how long trainers were without one of their ranges.
  void show_pauses() {
    std::vector<std::uint64_t> pauses;
    for (const Process* trainer : tasks_.trainers) {
      const auto own = numbers_in(*trainer, "is back after ([0-9]+) ms");
      pauses.insert(pauses.end(), own.begin(), own.end());
    }
    std::ranges::sort(pauses);
    if (!pauses.empty()) {
      std::cout << pauses.size() << " pauses of trainers: median " << pauses[pauses.size() / 2]
                << " ms, longest " << pauses.back() << " ms\n";
    }
  }

  [[nodiscard]] Words steps_for(std::size_t kills) {
    train_steps_ = 250 * (kills + 4);
    return {"--train_steps=" + std::to_string(train_steps_)};
  }

  std::optional<ClusterOnLoopback> cluster_;
  Words flags_;
  Tasks tasks_;
  std::vector<Process*> all_ps_;    // including killed ones
  std::vector<std::size_t> pairs_;  // by range: the number of times it got a second copy
  std::size_t steps_ = 0;           // of trainer 2
  std::uint64_t train_steps_ = 0;
};

TEST_F(Replicas, AsynchronousUpdatesSurviveTheDeathOfOneOfTwoPs) {
  start(2, kAsync + steps_for(kill_count()));
  kill_and_restart(kill_count());
  ASSERT_TRUE(all_exit(tasks_.all(), kExitDone));
  expect_never_rolled_back();
  show_pauses();
  expect_each_applied_once(1);
}

TEST_F(Replicas, AsynchronousUpdatesSurviveTheDeathOfOneOfThreePs) {
  start(3, kAsync + steps_for(kill_count()));
  kill_and_restart(kill_count());
  ASSERT_TRUE(all_exit(tasks_.all(), kExitDone));
  expect_never_rolled_back();
  show_pauses();
  expect_each_applied_once(1);
}

TEST_F(Replicas, SynchronousRunIsBitIdentical) {
  const Words steps = {"--train_steps=200", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40"});
  train_steps_ = 200;
  kill_and_restart(3);
  ASSERT_TRUE(all_exit(tasks_.all(), kExitDone));
  expect_never_rolled_back();
  show_pauses();
  expect_each_applied_once(3);
  expect_undisturbed(steps);
}

// (A copy that is made in the last steps has no time to negotiate shared memory.)
TEST_F(Replicas, UpdatesStayInTheMemoryOfOneMachineOrAreSentToBitIdenticalResults) {
  std::vector<std::string> hashes;
  for (const std::string transport : {"auto", "tcp"}) {
    Process& job =
        run("launch " + transport,
            Words{"launch", "--ps=2", "--workers=2", "--ps_replicas=2", "--train_steps=500",
                  "--print_weights_hash", "--transport=" + transport} +
                data_flags());
    ASSERT_TRUE(exits(job, kExitDone));
    for (const std::string range : {"0", "1"}) {
      const auto held = numbers_in(job, "holds a copy of range " + range + " at step ([0-9]+)");
      ASSERT_FALSE(held.empty()) << "range " << range;
      const bool is_told = job.standard_error().find("shares memory with the backup of range " +
                                                     range) != std::string::npos;
      if (transport == "tcp") {
        EXPECT_FALSE(is_told) << "range " << range;
      } else if (held.front() < 400) {
        EXPECT_TRUE(is_told) << "range " << range;
      }
    }
    hashes.push_back(weights_hash_in(job));
  }
  ASSERT_EQ(hashes[0].size(), 64U);
  EXPECT_EQ(hashes[0], hashes[1]);
}

// The state waits for the other host to read it, and so do later updates: two at most, after which
// the trainers wait.
TEST_F(Replicas, SlowCopyCostsItsPrimaryLittleMemory) {
  cluster_.emplace(ClusterSize{.ps = 2, .workers = 1});
  std::atomic<pid_t> primary = 0;
  std::atomic<std::uint64_t> before = 0;
  std::atomic<int> beats = 0;
  std::atomic<bool> is_told = false;
  std::promise<void> stalled;
  std::promise<void> taken;
  const std::shared_future<void> is_taken = taken.get_future().share();
  Relay to_copy(*cluster_, 1, [&](const Passing& passing) {
    if (passing.to_ps && passing.header.kind == net::FrameKind::kFill) {
      before = memory_of(primary);
      is_taken.wait();  // the copy reads nothing meanwhile
    }
    return whole(passing.header);
  });
  Relay to_trainer(*cluster_, 0, [&](const Passing& passing) {
    if (!passing.to_ps && passing.hello.purpose == net::ChannelPurpose::kStep) {
      // A waiting ps sends a heartbeat every second. After two in a row it does not wait for the
      // trainer.
      beats = passing.header.kind == net::FrameKind::kHeartbeat ? beats + 1 : 0;
      if (beats >= 2 && before != 0 && !is_told.exchange(true)) {
        stalled.set_value();
      }
    }
    return whole(passing.header);
  });
  flags_ = {"--ps_replicas=2",        "--transport=tcp",       "--batch_size=1",
            "--learning_rate=0.001",  "--optimizer=sgd",       "--hidden_units=2000,2000",
            "--heartbeat_timeout=60", "--train_steps=1000000", "--log_every=1"};
  tasks_.ps = {&start_ps(0, &to_trainer), &start_ps(1, &to_copy)};
  primary = tasks_.ps[0]->pid();
  tasks_.trainers = {&run_task(*cluster_, Job::kWorker, 0, flags_)};
  const bool is_stalled = stalled.get_future().wait_for(kPatience) == std::future_status::ready;
  const std::uint64_t after = memory_of(primary);
  taken.set_value();
  ASSERT_TRUE(is_stalled);
  constexpr std::uint64_t kRange = 5'592'010 / 2 * sizeof(float);
  std::cout << "ranges that the primary has allocated since it began to fill its copy: "
            << static_cast<double>(after - before) / static_cast<double>(kRange) << "\n";
  EXPECT_LT(after - before, 8 * kRange);  // two updates, and the allocations of a first step
  pairs_.assign(2, 0);
  EXPECT_TRUE(is_paired_again(0));
}

// The update was applied and copied; only its answer was lost, so the trainer sends it again, to
// the copy.
TEST_F(Replicas, PushWhoseAnswerWasLostIsNotAppliedTwice) {
  std::atomic<bool> armed = false;
  std::promise<void> held;
  cluster_.emplace(ClusterSize{.ps = 2, .workers = 3});
  Relay relay(*cluster_, 0, [&](const Passing& passing) {
    const bool is_answer = !passing.to_ps && passing.header.kind == net::FrameKind::kParameters &&
                           passing.hello.from == net::TaskId{.job = Job::kWorker, .index = 1};
    if (is_answer && armed.exchange(false)) {
      held.set_value();
      return std::size_t{0};
    }
    return whole(passing.header);
  });
  start_behind({&relay, nullptr});
  armed = true;
  ASSERT_EQ(held.get_future().wait_for(kPatience), std::future_status::ready);
  kill_ps_0_behind({&relay, nullptr});
}

// The update does not reach the copy, so the trainer gets heartbeats instead of an answer.
TEST_F(Replicas, PushThatTheCopyLacksIsNotAcknowledged) {
  std::atomic<bool> armed = false;
  std::atomic<bool> holds = false;
  std::promise<void> waits;
  cluster_.emplace(ClusterSize{.ps = 2, .workers = 3});
  Relay to_trainers(*cluster_, 0, [&](const Passing& passing) {
    const bool is_beat = !passing.to_ps && passing.header.kind == net::FrameKind::kHeartbeat &&
                         passing.hello.purpose == net::ChannelPurpose::kStep;
    if (is_beat && holds.exchange(false)) {
      waits.set_value();
    }
    return whole(passing.header);
  });
  Relay to_copy(*cluster_, 1, [&](const Passing& passing) {
    if (passing.to_ps && passing.header.kind == net::FrameKind::kUpdate && armed.exchange(false)) {
      holds = true;
      return std::size_t{0};
    }
    return whole(passing.header);
  });
  start_behind({&to_trainers, &to_copy});
  armed = true;
  ASSERT_EQ(waits.get_future().wait_for(kPatience), std::future_status::ready);
  kill_ps_0_behind({&to_trainers, &to_copy});
}

// A step may lie between the two pushes of the killed trainer.
TEST_F(Replicas, WorkerAndPsKilledTogetherInASynchronousRun) {
  const Words steps = {"--train_steps=120", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40"});
  ASSERT_TRUE(says_times(*tasks_.trainers[2], 30, "global step: "));
  for (Process* victim : {tasks_.trainers[1], tasks_.ps[0]}) {
    victim->send(SIGKILL);
    ASSERT_TRUE(killed(*victim, SIGKILL));
  }
  tasks_.trainers[1] = &run_task(*cluster_, Job::kWorker, 1, flags_);
  tasks_.ps[0] = &run_task(*cluster_, Job::kPs, 0, flags_);
  expect_undisturbed(steps);
}

// The next chief learns from the hosts which of them is the primary.
TEST_F(Replicas, ChiefKilledBetweenTheDeathsOfTwoPs) {
  const Words steps = {"--train_steps=200", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40"});
  kill_and_restart(1);
  tasks_.chief().send(SIGKILL);
  ASSERT_TRUE(killed(tasks_.chief(), SIGKILL));
  tasks_.trainers[0] = &run_task(*cluster_, Job::kWorker, 0, flags_);
  ASSERT_TRUE(says_times(tasks_.chief(), 10, "global step: "));
  tasks_.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks_.ps[1], SIGKILL));
  tasks_.ps[1] = &run_task(*cluster_, Job::kPs, 1, flags_);
  ASSERT_TRUE(says(tasks_.chief(), "range 1: view .* with a backup"));
  expect_undisturbed(steps);
}

// Without a copy the run rolls back to the newest snapshot, and the result is bit-identical.
TEST_F(Replicas, BothHostsOfARangeKilledSetTheRunBack) {
  const Words steps = {"--train_steps=150", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40", "--save_steps=10"});
  ASSERT_TRUE(says_times(*tasks_.trainers[2], 30, "global step: "));
  for (Process* ps : tasks_.ps) {
    ps->send(SIGKILL);
  }
  for (const std::size_t index : {0U, 1U}) {
    ASSERT_TRUE(killed(*tasks_.ps[index], SIGKILL));
    tasks_.ps[index] = &run_task(*cluster_, Job::kPs, index, flags_);
  }
  EXPECT_TRUE(says(tasks_.chief(), "The run goes on from global step [0-9]+, generation 2"));
  expect_undisturbed(steps);
}

// A ps is killed and comes back, so that the other one serves both ranges. The first is then frozen
// while updates are handed off to it; when the other one is killed, it has all of them
// nevertheless.
TEST_F(Replicas, BackupHasWhatWasHandedOffWhileItWasFrozen) {
  const Words steps = {"--train_steps=300", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40"});
  train_steps_ = 300;
  kill_and_restart(1);
  Process& trainer = *tasks_.trainers[2];
  const auto steps_made = [&] { return count_of(trainer.standard_error(), "global step: "); };
  ASSERT_TRUE(says_times(trainer, steps_made() + 10, "global step: ")) << "updates are handed off";
  tasks_.ps[0]->send(SIGSTOP);
  ASSERT_TRUE(says_times(trainer, steps_made() + 3, "global step: "))
      << "the run must not wait for the frozen ps";
  tasks_.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks_.ps[1], SIGKILL));
  tasks_.ps[0]->send(SIGCONT);
  tasks_.ps[1] = &run_task(*cluster_, Job::kPs, 1, flags_);
  all_ps_.push_back(tasks_.ps[1]);
  ASSERT_TRUE(is_paired_again(0));
  ASSERT_TRUE(is_paired_again(1));
  expect_undisturbed(steps);
  expect_never_rolled_back();
  expect_each_applied_once(3);
}

// A frozen ps is taken for dead; when it continues, it learns that it was replaced, and becomes a
// backup.
TEST_F(Replicas, FrozenPsIsReplacedAndFilledAgain) {
  const Words steps = {"--train_steps=200", "--print_weights_hash"};
  start(2, steps + Words{"--debug_delay_ms=40", "--heartbeat_timeout=2"});
  tasks_.ps[0]->send(SIGSTOP);
  ASSERT_TRUE(says(tasks_.chief(), "range 0: view 3, ps 1 .* alone"));
  tasks_.ps[0]->send(SIGCONT);
  ASSERT_TRUE(is_paired_again(0));
  expect_undisturbed(steps);
  expect_never_rolled_back();
}

TEST_F(Replicas, LaunchStartsAKilledPsAgain) {
  Process& launch = run(
      "launch", Words{"launch", "--workers=2", "--ps=2", "--ps_replicas=2", "--sync_replicas=false",
                      "--train_steps=1500", "--debug_delay_ms=10", "--log_every=1"} +
                    data_flags());
  ASSERT_TRUE(says(launch, "range 0: view .* with a backup"));
  ASSERT_TRUE(says(launch, "range 1: view .* with a backup"));
  const std::vector<pid_t> children = children_of(launch.pid());
  ASSERT_FALSE(children.empty());
  const auto is_ps = [](pid_t pid) {
    const std::vector<std::string> words = command_line_of(pid);
    return std::ranges::find(words, "ps") != words.end();
  };
  const auto victim = std::ranges::find_if(children, is_ps);
  ASSERT_NE(victim, children.end());
  ::kill(*victim, SIGKILL);
  EXPECT_TRUE(says_times(launch, 2, "range 0: view .* with a backup"));
  EXPECT_TRUE(says_times(launch, 2, "range 1: view .* with a backup"));
  EXPECT_TRUE(exits(launch, kExitDone));
  EXPECT_EQ(count_of(launch.standard_error(), "generation 2"), 0U);
}

TEST_F(Replicas, NeedTwoPs) {
  Process& launch = run("launch", {"launch", "--ps_replicas=2"});
  EXPECT_TRUE(exits(launch, kExitUsage));
  EXPECT_TRUE(says(launch, "--ps_replicas: 2 is more than the 1 ps"));
}

}  // namespace
}  // namespace disttf::test_process
