// Tasks that are killed or frozen in the last moments of a run, when some of them have their result
// and others do not, or the chief is about to announce the end. Every run ends on its own with the
// right result.
//
//   DISTTF_LAST_MOMENT_RUNS   number of runs, default 10; `make last-moment` sets 300
//   DISTTF_LAST_MOMENT_SEED   the first seed, default 1
//
// The run's number determines the victims, the moment and the mode; a failure prints it in the
// run's name. The exact time of the signal depends on the machine.
#include <algorithm>
#include <csignal>
#include <iostream>
#include <random>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

constexpr int kSteps = 120;  // the attacks below start near its end
// For a run of 2 s whose tasks are restarted a few times, on a busy machine.
constexpr seconds kRunHangs{60};

struct Mode {
  const char* name;
  Words flags;
  bool is_bit_identical;
};

const std::vector<Mode>& modes() {
  static const std::vector<Mode> all = {{"sync", {}, true},
                                        {"replicas", {"--ps_replicas=2"}, true},
                                        {"elastic", {"--min_workers=1"}, true},
                                        {"async", {"--sync_replicas=false"}, false},
                                        {"backup", {"--replicas_to_aggregate=2"}, false}};
  return all;
}

// The disturbance of one run.
struct Attack {
  const Mode* mode = nullptr;
  bool saves = false;
  std::vector<std::string> victims;  // killed
  bool freezes_chief = false;        // for a while before the kill
  std::string after;                 // a line of the log
  milliseconds delay{0};             // after that line
  milliseconds frozen{0};
};

Attack draw(unsigned number) {
  std::mt19937 random(number);
  const auto below = [&random](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  Attack attack;
  attack.mode = &modes()[number % modes().size()];
  attack.saves = below(2) == 0;
  std::vector<std::string> tasks = {"ps:0", "ps:1", "chief:0", "worker:0", "worker:1"};
  std::shuffle(tasks.begin(), tasks.end(), random);
  tasks.resize(1 + below(3));
  attack.victims = tasks;
  attack.freezes_chief =
      below(3) == 0 && std::find(tasks.begin(), tasks.end(), "chief:0") == tasks.end();
  // Asynchronous trainers do not see each step, and a late one sees none.
  const std::vector<std::string> moments = {R"(global step: 1(0[89]|[12]\d),)",
                                            R"(global step: 1(1[5-9]|2\d),)", "Training elapsed",
                                            "ps:0.*said goodbye", "ps:1.*said goodbye"};
  attack.after = moments[below(moments.size())];
  attack.delay = milliseconds(below(40));
  attack.frozen = milliseconds(below(1000));
  return attack;
}

std::string text_of(const Attack& attack) {
  std::string text = attack.mode->name;
  text += attack.saves ? ", saving" : "";
  text += attack.freezes_chief ? ", the chief frozen" : "";
  text += ", killed:";
  for (const std::string& victim : attack.victims) {
    text += " " + victim;
  }
  return text + ", " + std::to_string(attack.delay.count()) + " ms after \"" + attack.after + "\"";
}

class LastMoment : public ProcessTest {
 protected:
  void send(const Process& launch, const std::string& task, int signal) {
    if (const auto pid = pid_of_task(launch.pid(), task)) {
      hits_ += kill(*pid, signal) == 0 ? 1U : 0U;
    }
  }

  Process& start(const std::string& name, const Mode& mode, bool saves) {
    Words words = Words{"launch",           "--ps=2",
                        "--workers=2",      "--chief",
                        "--model=softmax",  "--train_steps=" + std::to_string(kSteps),
                        "--log_every=1",    "--print_weights_hash",
                        "--max_restarts=30"} +
                  mode.flags + data_flags();
    if (saves) {
      words = words + Words{"--train_dir=" + (scratch() / name).string(), "--save_steps=40"};
    }
    return run(name, words);
  }

  void expect_result_after(const Attack& attack, unsigned number) {
    SCOPED_TRACE("run " + std::to_string(number) + ": " + text_of(attack));
    Process& launch = start("run_" + std::to_string(number), *attack.mode, attack.saves);
    ASSERT_TRUE(says(launch, attack.after));
    static_cast<void>(launch.wait(attack.delay));  // until the drawn moment
    if (attack.freezes_chief) {
      send(launch, "chief:0", SIGSTOP);
    }
    for (const std::string& victim : attack.victims) {
      send(launch, victim, SIGKILL);
    }
    if (attack.freezes_chief) {
      static_cast<void>(launch.wait(attack.frozen));
      send(launch, "chief:0", SIGCONT);
    }
    ASSERT_TRUE(exits(launch, kExitDone, kRunHangs));
    EXPECT_GE(count_of(launch.standard_output(), data_name() + " accuracy: "), 1U);
    if (attack.mode->is_bit_identical) {
      EXPECT_EQ(weights_hash_in(launch), wanted_);
      // All printed results are this one: no task has exited with another.
      EXPECT_EQ(count_of(launch.report(), "Weights SHA-256: "),
                count_of(launch.report(), "Weights SHA-256: " + wanted_));
    }
  }

  std::string wanted_;
  unsigned hits_ = 0;  // signals that reached their task
};

TEST_F(LastMoment, KillsLeaveTheRightResult) {
  Process& undisturbed = start("undisturbed", modes().front(), false);
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  wanted_ = weights_hash_in(undisturbed);
  const unsigned first = number_from_variable("DISTTF_LAST_MOMENT_SEED", 1);
  const unsigned runs = number_from_variable("DISTTF_LAST_MOMENT_RUNS", 10);
  ASSERT_GT(runs, 0U) << "DISTTF_LAST_MOMENT_RUNS";
  unsigned run = 0;
  for (; run < runs && !HasFailure(); ++run) {
    expect_result_after(draw(first + run), first + run);
  }
  EXPECT_GE(hits_, run / 2) << "the signals came too late";
  std::cout << run << " runs were disturbed in their last moments, " << hits_
            << " signals reached their task" << std::endl;
}

}  // namespace
}  // namespace disttf::test_process
