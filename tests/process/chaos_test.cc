// `launch --chaos` with many seeds: tasks are killed and frozen; frames are lost, cut, delayed,
// repeated and reordered; and the weights are bit-identical to those of an undisturbed run.
//
//   DISTTF_CHAOS_RUNS           number of seeds, default 3; `make chaos` sets 200
//   DISTTF_CHAOS_NETWORK_RUNS   the same for a network with more state than weights: convolutions,
//                               batch norm, dropout and augmentation; default 1
//   DISTTF_CHAOS_TLS_RUNS       the same with all traffic over TLS, as between machines; otherwise
//   a
//                               launch's tensors go through shared memory; default 1
//   DISTTF_CHAOS_PROGRAM_RUNS   the same with a user's own program, which is killed and frozen as
//                               well, alone or with its task; default 2
//   DISTTF_CHAOS_PROGRAM        the words of that program, at blanks, and the flags of the run
//   before
//                               them: "--train_steps=200 -- python3 train.py"; default: softmax
//                               regression in plain Python, 150 steps
//   DISTTF_CHAOS_SEED           the first seed, default 1
//
// Every other run has an evaluator, which is killed and frozen like the other tasks: alternately it
// evaluates a --train_dir and the parameters on the ps. It must not change a bit of the result, and
// must have evaluated the final model, or have logged why not.
//
// The name of a failing run contains its seed, which replays the run.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <map>
#include <regex>
#include <sstream>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

// Slow enough that the faults occur during the run, and that a run takes some seconds.
const Words kRun = {"--ps=2", "--workers=3", "--chief", "--print_weights_hash"};
const Words kSlowly = {"--debug_delay_ms=6", "--save_steps=20"};
// In 20 of 1000 steps a task is killed or frozen, and 20 of 1000 frames are tampered with.
constexpr int kRate = 20;
// For a run that takes 2 to 20 s, on a machine that runs another one.
constexpr seconds kHangs{150};

// Counts of the faults, over all runs: "SIGKILL to [ps:1]" 12 times, "is sent twice" 31 times.
class Tally {
 public:
  void add(const std::string& log) {
    static const std::regex kFault(
        R"(chaos: (SIG\w+ to (?:the \w+ of )?\[\w+):|injected fault .*\) (is (?:a reply and )?\w+|comes late))");
    std::size_t faults = 0;
    for (std::sregex_iterator each(log.begin(), log.end(), kFault), end; each != end; ++each) {
      const std::smatch& match = *each;
      ++count_[match[1].matched ? match[1].str() + "]" : "a frame " + match[2].str()];
      ++faults;
    }
    fewest_ = runs_++ == 0 ? faults : std::min(fewest_, faults);
  }
  [[nodiscard]] std::size_t fewest() const { return fewest_; }
  void print() const {
    std::cout << runs_ << " runs, each with at least " << fewest_ << " faults; in all:\n";
    for (const auto& [what, count] : count_) {
      std::cout << "  " << count << " x " << what << "\n";
    }
    std::cout << std::flush;
  }

 private:
  std::map<std::string, std::size_t> count_;
  std::size_t runs_ = 0;
  std::size_t fewest_ = 0;
};

// Words between blanks.
Words words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

class Chaos : public ProcessTest {
 protected:
  [[nodiscard]] Words evaluator_of(unsigned seed) const {
    if (seed % 2 != 0) {
      return {};
    }
    const Words flags = {"--evaluator", "--evaluator_secs=0"};
    return seed % 4 != 0 ? flags : flags + Words{"--train_dir=" + (scratch() / "run").string()};
  }

  // The evaluator has the run's own result; or it, or the ps that it would have pulled the result
  // from, was disturbed after the run was over, and a log line says so.
  static void expect_evaluated(Process& job) {
    static const std::regex kWhyNot(
        R"(\[evaluator:0\] .*(; the run was over already|lost with a parameter server|did not end within))");
    const std::string result =
        captured(job.standard_output(), "(" + data_name() + " accuracy: [0-9.]+)");
    const std::string log = job.standard_error();
    EXPECT_THAT(log, ::testing::HasSubstr("[evaluator:0]"));
    EXPECT_TRUE(log.find("[evaluator:0] " + result + "\n") != std::string::npos ||
                std::regex_search(log, kWhyNot));
  }

  // `flags` select the model; `variable` sets the number of runs, by default `otherwise`.
  void runs_bit_identically(const Words& flags, const char* variable, unsigned otherwise) {
    const Words all = kRun + flags + data_flags();
    Process& undisturbed = run("undisturbed", Words{"launch"} + all);
    ASSERT_TRUE(exits(undisturbed, kExitDone));
    const std::string wanted = weights_hash_in(undisturbed);
    const unsigned first = number_from_variable("DISTTF_CHAOS_SEED", 1);
    const unsigned runs = number_from_variable(variable, otherwise);
    ASSERT_GT(runs, 0U) << variable;
    Tally tally;
    for (unsigned seed = first; seed < first + runs && !HasFailure(); ++seed) {
      const std::string chaos = "--chaos=" + std::to_string(seed) + "," + std::to_string(kRate);
      const Words evaluated = evaluator_of(seed);
      Process& job = run(chaos, Words{"launch", chaos} + all + kSlowly + evaluated);
      ASSERT_TRUE(exits(job, kExitDone, kHangs));
      EXPECT_EQ(weights_hash_in(job), wanted);
      if (!evaluated.empty()) {
        expect_evaluated(job);
      }
      std::filesystem::remove_all(scratch() / "run");
      tally.add(job.standard_error());
      const unsigned done = seed - first + 1;
      if (done % 10 == 0) {  // progress for a user who runs many
        std::cout << done << " of " << runs << " runs" << std::endl;
      }
    }
    tally.print();
    EXPECT_GE(tally.fewest(), 3U) << "too few faults";
  }
};

TEST_F(Chaos, LeavesTheBitsAlone) {
  runs_bit_identically({"--train_steps=200"}, "DISTTF_CHAOS_RUNS", 3);
}

TEST_F(Chaos, LeavesTheBitsAloneOverTls) {
  runs_bit_identically({"--train_steps=200", "--transport=tcp"}, "DISTTF_CHAOS_TLS_RUNS", 1);
}

TEST_F(Chaos, LeavesTheBitsOfANetworkAlone) {
  const std::string file = (source_directory() / "tests/process/network.toml").string();
  runs_bit_identically({"--config=" + file, "--batch_size=10", "--train_steps=200"},
                       "DISTTF_CHAOS_NETWORK_RUNS", 1);
}

// Two in three faults of a trainer hit its task or its program alone. Every third run has live
// replicas, every third one is elastic, whose hash is another one.
TEST_F(Chaos, LeavesTheBitsOfAUsersProgramAlone) {
  const char* const words = std::getenv("DISTTF_CHAOS_PROGRAM");
  const std::string client = (source_directory() / "tests/support/program_client.py").string();
  const Words program =
      words != nullptr ? words_of(words) : Words{"--train_steps=150", "--", "python3", client};
  const auto launch = [&program](const Words& flags) {
    return Words{"launch", "--program", "--ps=2", "--workers=3", "--print_weights_hash"} + flags +
           program;
  };
  const Words elastic = {"--micro_batches=4", "--min_workers=1"};
  std::map<bool, std::string> wanted;
  for (const bool is_elastic : {false, true}) {
    Process& undisturbed = run("undisturbed", launch(is_elastic ? elastic : Words{}));
    ASSERT_TRUE(exits(undisturbed, kExitDone, kHangs));
    wanted[is_elastic] = weights_hash_in(undisturbed);
  }
  const unsigned first = number_from_variable("DISTTF_CHAOS_SEED", 1);
  const unsigned runs = number_from_variable("DISTTF_CHAOS_PROGRAM_RUNS", 2);
  Tally tally;
  for (unsigned seed = first; seed < first + runs && !HasFailure(); ++seed) {
    const std::string chaos = "--chaos=" + std::to_string(seed) + "," + std::to_string(kRate);
    const bool is_elastic = seed % 3 == 2;
    Words flags = kSlowly + Words{chaos} + (is_elastic ? elastic : Words{});
    if (seed % 3 == 0) {
      flags.push_back("--ps_replicas=2");
    }
    if (seed % 2 == 0) {
      flags.push_back("--program_spare=false");
    }
    Process& job = run(chaos, launch(flags));
    ASSERT_TRUE(exits(job, kExitDone, kHangs));
    EXPECT_EQ(weights_hash_in(job), wanted.at(is_elastic));
    tally.add(job.standard_error());
    if ((seed - first + 1) % 10 == 0) {
      std::cout << seed - first + 1 << " of " << runs << " runs" << std::endl;
    }
  }
  tally.print();
  EXPECT_GE(tally.fewest(), 1U) << "too few faults";
}

// Step channels that lose, cut, delay, repeat and reorder frames by a seed: the run's result is
// bit-identical to an undisturbed one. A failing seed is in the test's name and command lines.

using net::Job;

const Words kFrameRun = {"--train_steps=150", "--print_weights_hash"};
// In 1000 frames: about every fifth exchange has a fault.
constexpr int kFrameRate = 100;

bool shares_memory(int seed) { return seed % 2 == 0; }

Words faults(int seed) {
  return {"--chaos_frames=" + std::to_string(seed) + "," + std::to_string(kFrameRate),
          shares_memory(seed) ? "--transport=shm" : "--transport=tcp"};
}

class FrameFaults : public ProcessTest, public ::testing::WithParamInterface<int> {
 protected:
  std::string undisturbed_hash() {
    Process& undisturbed = run("undisturbed", launch() + kFrameRun);
    EXPECT_TRUE(exits(undisturbed, kExitDone));
    return weights_hash_in(undisturbed);
  }
  static Words launch() {
    return Words{"launch", "--ps=2", "--workers=2", "--chief"} + data_flags();
  }
};

TEST_P(FrameFaults, LeaveTheBitsAlone) {
  Process& launched = run("launch", launch() + kFrameRun + faults(GetParam()));
  EXPECT_TRUE(exits(launched, kExitDone));
  EXPECT_EQ(weights_hash_in(launched), undisturbed_hash());
  const std::string log = launched.standard_error();
  Words kinds = {"\\) is lost",         "\\) is cut after",    "\\) is sent, but reported as lost",
                 "\\) is lost for now", "\\) is delayed",      "\\) is sent twice",
                 "\\) comes late",      "is a reply and lost", "is a reply and delayed"};
  if (!shares_memory(GetParam())) {  // otherwise replies mostly have no body that could be cut
    kinds.push_back("is a reply and cut");
  }
  for (const std::string& kind : kinds) {
    EXPECT_THAT(log, ::testing::ContainsRegex(kind)) << "too few kinds of faults";
  }
}

TEST_P(FrameFaults, AndAPsThatIsKilled) {
  const ClusterOnLoopback cluster({.ps = 2, .workers = 2, .chief = true});
  Tasks tasks = run_cluster(
      cluster, kFrameRun + faults(GetParam()) + Words{"--save_steps=20", "--log_every=1"});
  ASSERT_TRUE(says(tasks.chief(), "global step: [4-9][0-9],"));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, Job::kPs, 1);
  EXPECT_TRUE(all_exit(tasks.all(), kExitDone));
  const std::string undisturbed = undisturbed_hash();
  for (Process* trainer : tasks.trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), undisturbed);
  }
}

TEST_P(FrameFaults, DoNotHoldUpAnAsynchronousRun) {
  Process& launched = run("launch", launch() + faults(GetParam()) +
                                        Words{"--train_steps=400", "--sync_replicas=false"});
  EXPECT_TRUE(exits(launched, kExitDone));
}

INSTANTIATE_TEST_SUITE_P(Seed, FrameFaults, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace disttf::test_process
