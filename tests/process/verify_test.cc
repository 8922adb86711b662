// `disttf verify -- COMMAND`: programs that pass, and one for each check that fails it. The clients
// of examples/program also train.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "tests/process/process_test.h"
#include "tests/support/engines.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::string support(const char* file) {
  return (source_directory() / "tests/support" / file).string();
}

// Whether a command can be run here.
bool has(const std::string& command) {
  return std::system(("command -v " + command + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT
}

class Verify : public ProcessTest {
 protected:
  Process& verify(const Words& command, const Words& flags = {}) {
    return run("verify", Words{"verify", "--batch_size=5"} + flags + Words{"--"} + command);
  }
  // Verifies tests/support/faulty_program.py.
  Process& verify_fault(const char* fault, const Words& flags = {}) {
    // Without bytecode: the source tree may be read-only.
    return verify({"python3", "-B", support("faulty_program.py"), fault}, flags);
  }
  // The lines that do not begin with "ok".
  static Words bad_lines(const Process& job) {
    std::istringstream lines(job.standard_output());
    Words found;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("ok: ")) {
        found.push_back(line);
      }
    }
    return found;
  }
  // Expects exactly one failed check, with this line.
  void expect_one_failure(const char* fault, const std::string& line) {
    SCOPED_TRACE(fault);
    Process& job = verify_fault(fault);
    EXPECT_TRUE(exits(job, kExitError));
    EXPECT_THAT(bad_lines(job), ::testing::ElementsAre(HasSubstr(line)));
  }
  // Builds a client of examples/program in the test's folder.
  [[nodiscard]] bool builds(const std::string& shell_line) {
    Process& build = run_program(
        "/bin/sh", {"-c", shell_line, (source_directory() / "examples/program").string()});
    return exits(build, 0);
  }
  // Expects that the client passes, and that it trains to the same weights as the client in C, bit
  // for bit: each computes with float32 in the same order.
  void expect_good_client(const Words& command) {
    EXPECT_TRUE(exits(verify(command), kExitDone));
    if (has("cc")) {
      ASSERT_TRUE(builds(kBuildC));
      EXPECT_EQ(trained(command), trained({"./quadratic_c"}));
    }
  }

  static constexpr const char* kBuildC = "cc -std=c99 -O2 -o quadratic_c $0/quadratic.c";

 private:
  // Trains the program for 50 steps, and returns the weights' hash.
  std::string trained(const Words& command) {
    Process& job =
        run("launch", Words{"launch", "--workers=2", "--batch_size=5", "--train_steps=50",
                            "--print_weights_hash", "--program", "--"} +
                          command);
    EXPECT_TRUE(exits(job, kExitDone));
    return weights_hash_in(job);
  }
};

TEST_F(Verify, PassesAGoodProgram) {
  Process& job = verify_fault("none");
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(bad_lines(job), ::testing::IsEmpty());
  EXPECT_THAT(job.standard_output(),
              StartsWith("ok: variables: 2 variables, 15 parameters, client faulty_program.py, "
                         "fingerprint threads 1\n"
                         "ok: initial values: finite\n"
                         "ok: steps: finite losses and gradients of 3 steps\n"));
  EXPECT_EQ(count_of(job.standard_output(), "\nok: "), 12U);
}

TEST_F(Verify, PassesTheClientOfTheOtherTests) {
  Process& job = verify({"python3", "-B", support("program_client.py"), "saves=end"},
                        {"--steps=1", "--seed=7"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(std::filesystem::exists(scratch() / "end"));
}

TEST_F(Verify, PassesTheClientInC) {
  if (!has("cc")) {
    GTEST_SKIP() << "there is no C compiler";
  }
  ASSERT_TRUE(builds(kBuildC));
  EXPECT_TRUE(exits(verify({"./quadratic_c"}), kExitDone));
}

TEST_F(Verify, PassesTheClientInGo) {
  if (!has("go")) {
    GTEST_SKIP() << "there is no Go";
  }
  ASSERT_TRUE(
      builds("out=$PWD/quadratic; export GOCACHE=$PWD/cache GOFLAGS=-mod=mod; cp -r $0/go . "
             "&& cd go && go build -o $out"));
  expect_good_client({"./quadratic"});
}

TEST_F(Verify, PassesTheClientInRust) {
  if (!has("rustc") || std::system("rustc --version >/dev/null 2>&1") != 0) {  // NOLINT
    GTEST_SKIP() << "there is no Rust";
  }
  ASSERT_TRUE(builds("rustc --edition 2021 -O -o quadratic $0/rust/quadratic.rs"));
  expect_good_client({"./quadratic"});
}

TEST_F(Verify, PassesTheClientInJavaScript) {
  const std::filesystem::path tool = source_directory() / "build/tools/node";
  if (!std::filesystem::exists(tool / "whole")) {
    test_support::skip_without_engine("there is no build/tools/node (.ci/tools node makes it)");
    return;
  }
  ASSERT_TRUE(builds("cp $0/javascript/*.mjs ."));
  std::filesystem::create_symlink(tool / "node_modules", scratch() / "node_modules");
  expect_good_client({(tool / "node").string(), "quadratic.mjs"});
}

TEST_F(Verify, PassesTheClientOfThePackage) {
  if (std::system("python3 -c 'import numpy' >/dev/null 2>&1") != 0) {  // NOLINT
    GTEST_SKIP() << "python3 has no NumPy";
  }
  std::ofstream(scratch() / "program.py")
      << "import sys; sys.path.insert(0, sys.argv[1])\n"
         "import numpy as np, disttf.numpy as dn\n"
         "x = np.arange(400, dtype='float32').reshape(100, 4) / 400\n"
         "y = x @ np.array([1, 2, 3, 4], 'float32')\n"
         "w = np.zeros(4, 'float32')\n"
         "run = dn.join({'w': w}, rows=100)\n"
         "for step in run:\n"
         "    rows = step.rows()\n"
         "    error = x[rows] @ w - y[rows]\n"
         "    step.push({'w': 2 * error @ x[rows] / len(rows)}, loss=(error ** 2).mean())\n";
  Process& job =
      verify({"python3", "-B", "program.py", (source_directory() / "deploy/python").string()});
  EXPECT_TRUE(exits(job, kExitDone));
}

TEST_F(Verify, NamesTheOneCheckThatFails) {
  const std::string again = "the program is not deterministic; docs/own_program.md, Determinism";
  expect_one_failure("repeat", "FAILED: same step again: variable 2 of 2, b, element 1: ");
  expect_one_failure("back", "(bits differ in step 0, computed after step 2): " + again);
  expect_one_failure("silent",
                     "FAILED: evaluation: EVALUATION has no numbers, and HELLO says that the");
  expect_one_failure("padding",
                     "FAILED: padding: what lies between two variables stays 0 in the "
                     "gradient's memory: float 1 behind variable 2 of 2, b: 0.5");
  expect_one_failure("end", "FAILED: end: the program ended with exit code 3; after END it exits");
  expect_one_failure("refusal", "FAILED: refusal: the program ended with exit code 1; after");
}

TEST_F(Verify, NamesTheFirstVariableThatDiffersInAnotherProcess) {
  Process& job = verify_fault("process");
  EXPECT_TRUE(exits(job, kExitError));
  const Words bad = bad_lines(job);
  ASSERT_EQ(bad.size(), 2U);  // the process with several slots is another one, too
  EXPECT_THAT(bad[0], StartsWith("FAILED: second process: variable 2 of 2, b, element 2: "));
  EXPECT_THAT(bad[0], EndsWith(" (bits differ in step 0): the program is not deterministic; "
                               "docs/own_program.md, Determinism"));
}

TEST_F(Verify, AsksForAnotherSlot) {
  Process& job = verify_fault("slot");
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_THAT(bad_lines(job),
              ::testing::ElementsAre(
                  "FAILED: several slots: the program ended with exit code 5",
                  "left out: closed socket: this process of the program has failed before"));
}

TEST_F(Verify, ComparesTheBitsAfterAnEvaluation) {
  Process& job = verify_fault("evaluation");
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_THAT(bad_lines(job),
              ::testing::ElementsAre(HasSubstr("(bits differ in step 2 after an evaluation)")));
}

TEST_F(Verify, LeavesOutWhatNeedsAnEarlierCheck) {
  Process& job = verify_fault("loss");
  EXPECT_TRUE(exits(job, kExitError));
  const Words bad = bad_lines(job);
  ASSERT_GE(bad.size(), 2U);
  EXPECT_EQ(bad[0], "FAILED: steps: the loss of step 0 is nan");
  EXPECT_EQ(bad[1], "left out: same step again: there are no gradients to compare with");
}

TEST_F(Verify, EndsWithTheSentenceOfTheProtocol) {
  Process& protocol = verify_fault("protocol");
  EXPECT_TRUE(exits(protocol, kExitError));
  EXPECT_THAT(protocol.standard_output(),
              StartsWith("FAILED: variables: the program sent HELLO: protocol is \"2\", allowed"));
  Process& initial = verify_fault("initial");
  EXPECT_TRUE(exits(initial, kExitError));
  EXPECT_THAT(initial.standard_output(),
              HasSubstr("FAILED: initial values: the program's initial value of w is not finite"));
  Process& layout = verify_fault("layout");
  EXPECT_TRUE(exits(layout, kExitError));
  EXPECT_THAT(layout.standard_output(), HasSubstr("FAILED: second process: another process has "
                                                  "other variables: variable 1 is w [5, 3]"));
}

TEST_F(Verify, NamesHowTheProgramEnded) {
  Process& job = verify({"/bin/sh", "-c", "echo started; exit 3"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_THAT(job.standard_output(),
              StartsWith("FAILED: variables: the program ended with exit code 3\n"));
  EXPECT_THAT(job.standard_error(), HasSubstr("started\n"));  // not beside the checks
  EXPECT_THAT(job.standard_output(), Not(HasSubstr("started")));
  Process& killed_one = verify({"/bin/sh", "-c", "kill -SEGV $$"});
  EXPECT_TRUE(exits(killed_one, kExitError));
  EXPECT_THAT(killed_one.standard_output(),
              StartsWith("FAILED: variables: the program was killed by signal 11"));
}

TEST_F(Verify, EndsAProgramThatHangs) {
  Process& job = verify_fault("hang", {"--program_timeout_secs=1"});
  EXPECT_TRUE(exits(job, kExitError));
  EXPECT_THAT(job.standard_output(), HasSubstr("FAILED: steps: the program hangs: it did not "
                                               "answer in time (--program_timeout_secs)\n"));
  EXPECT_THAT(job.standard_error(), HasSubstr("Fatal Python error: Aborted"));
}

TEST_F(Verify, WantsTheEndOfAProgramWhoseSocketIsClosed) {
  for (const auto& [fault, name] :
       {std::pair{"socket", "closed socket"}, std::pair{"spare", "closed socket of a spare"}}) {
    expect_one_failure(fault, "FAILED: " + std::string(name) +
                                  ": the program lives 10 s after the end of its socket");
  }
}

TEST_F(Verify, LeavesNoProcessOnASignal) {
  Process& job = verify({"/bin/sh", "-c", "echo $$ > pid; echo ready; sleep 1000 & wait"});
  ASSERT_TRUE(says(job, "ready"));
  pid_t pid = -1;
  std::ifstream(scratch() / "pid") >> pid;
  job.send(SIGINT);
  EXPECT_TRUE(exits(job, kExitInterrupted));
  EXPECT_TRUE(wait_until_gone({pid}));
}

TEST_F(Verify, PrintsJson) {
  Process& job = verify_fault("end", {"--json"});
  EXPECT_TRUE(exits(job, kExitError));
  const json printed = json::parse(job.standard_output());
  EXPECT_EQ(printed["ok"], false);
  EXPECT_EQ(printed["variables"], 2);
  EXPECT_EQ(printed["parameters"], 15);
  EXPECT_EQ(printed["client"], "faulty_program.py");
  EXPECT_EQ(printed["fingerprint"], json({{"threads", "1"}}));
  EXPECT_EQ(printed["checks"].size(), 13U);
  EXPECT_EQ(printed["checks"][7]["check"], "end");
  EXPECT_EQ(printed["checks"][7]["result"], "failed");
  EXPECT_EQ(printed["checks"][8]["result"], "ok");
}

TEST_F(Verify, NeedsACommandThatCanBeRun) {
  Process& job = run("verify", {"verify"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_TRUE(says(job, "verify: COMMAND is missing"));
  Process& other = verify({"disttf-no-such-program"});
  EXPECT_TRUE(exits(other, kExitUsage));
  EXPECT_TRUE(says(other, "COMMAND: \"disttf-no-such-program\" is not an executable program"));
}

// --check_gradients of a run.
TEST_F(Verify, ARunWarnsOfGradientsThatDiffer) {
  const auto launch = [this](const char* fault) -> Process& {
    return run("launch", {"launch", "--ps=1", "--workers=1", "--train_steps=6", "--batch_size=5",
                          "--check_gradients=3", "--program", "--program_spare=false", "--",
                          "python3", "-B", support("faulty_program.py"), fault});
  };
  Process& good = launch("none");
  EXPECT_TRUE(exits(good, kExitDone));
  EXPECT_THAT(good.standard_error(), Not(HasSubstr("deterministic")));
  Process& bad = launch("repeat");
  EXPECT_TRUE(exits(bad, kExitDone));
  EXPECT_THAT(bad.standard_error(), HasSubstr("variable 2 of 2, b, element 1: "));
  EXPECT_THAT(bad.standard_error(), HasSubstr("(bits differ in step 2, computed again)"));
  EXPECT_THAT(bad.standard_error(),
              HasSubstr("(bits differ in step 5, computed again): the program "
                        "is not deterministic; docs/own_program.md, "
                        "Determinism; 2 such gradient(s) so far"));
}

}  // namespace
}  // namespace disttf::test_process
