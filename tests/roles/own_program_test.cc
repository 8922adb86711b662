// The supervisor of a task and a user's program with real processes. The task is this very file
// (probe_main.cc), the program a shell script.
#include "roles/launch/shell/own_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "data/file.h"
#include "net/resolvers/tf_config.h"
#include "roles/launch/shell/program_command.h"
#include "tests/data/scratch.h"
#include "tests/roles/probe.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

using testing::EndsWith;

class OwnProgramTest : public testing::Test {
 protected:
  // Runs a supervisor, a process of its own, to its end. Its log and the output of its task are in
  // output_.
  void run(const std::string& script, bool has_spare) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
    const data::FileDescriptor read_end(ends[0]);
    data::FileDescriptor write_end(ends[1]);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(write_end.number(), STDOUT_FILENO);
      _exit(run_own_program({.cluster = {.ps = {}, .workers = {}, .chief = {}, .evaluators = {}},
                             .self = {.job = net::Job::kWorker, .index = 3},
                             .program = {.file = "/bin/bash", .words = {"bash", "-c", script}},
                             .has_spare = has_spare,
                             .task_words = {kProbeArgument, kProbeTask}}));
    }
    write_end = data::FileDescriptor();
    std::array<char, 4096> buffer{};
    for (ssize_t length = 0;
         (length = read(read_end.number(), buffer.data(), buffer.size())) > 0;) {
      output_.append(buffer.data(), static_cast<std::size_t>(length));
    }
    ASSERT_EQ(waitpid(pid, &status_, 0), pid);
  }

  std::string output_;
  int status_ = -1;
};

// A program that dies at its first answer; the next one ends with it.
const std::string kDiesOnce =
    "[ -n \"$DISTTF_PROGRAM_SPARE\" ] && kind=spare || kind=usual; echo $kind >&$DISTTF_PROGRAM_FD;"
    "head -c 1 <&$DISTTF_PROGRAM_FD >/dev/null; ";

TEST_F(OwnProgramTest, TheSpareTakesTheProgramsPlace) {
  run(kDiesOnce + "[ $kind = spare ] || kill -9 $$", /*has_spare=*/true);
  ASSERT_TRUE(WIFEXITED(status_)) << output_;
  EXPECT_EQ(WEXITSTATUS(status_), 0);
  EXPECT_THAT(output_, EndsWith("STARTED 1, signal 0\nprogram: usual\nENDED 1, signal 9\n"
                                "STARTED 2, signal 0\nprogram: spare\n"));
}

TEST_F(OwnProgramTest, ANewProgramTakesItWithoutASpare) {
  const data::test::ScratchDirectory scratch;
  const std::string mark = (scratch.path() / "was").string();
  run(kDiesOnce + "[ \"$TFMESOS_TASK_INDEX\" = 3 ] || exit 9; [ -e " + mark + " ] || { : > " +
          mark + "; kill -9 $$; }",
      /*has_spare=*/false);
  ASSERT_TRUE(WIFEXITED(status_)) << output_;
  EXPECT_EQ(WEXITSTATUS(status_), 0);
  EXPECT_THAT(output_, EndsWith("STARTED 1, signal 0\nprogram: usual\nENDED 1, signal 9\n"
                                "STARTED 2, signal 0\nprogram: usual\n"));
}

TEST_F(OwnProgramTest, ItsExitCodeCountsAfterTheRun) {
  run(kDiesOnce + "[ $kind = spare ] && exit 5; kill -9 $$", /*has_spare=*/true);
  ASSERT_TRUE(WIFEXITED(status_)) << output_;
  EXPECT_EQ(WEXITSTATUS(status_), 1);
}

using testing::Contains;
using testing::ElementsAre;

using Words = std::vector<std::string>;

net::Cluster made_up_cluster() {
  net::Cluster cluster;
  cluster.ps = {{"127.0.0.1", 1001}, {"127.0.0.1", 1002}};
  cluster.workers = {{"127.0.0.1", 1003}, {"127.0.0.1", 1004}};
  return cluster;
}

const net::TaskId kWorker1{.job = net::Job::kWorker, .index = 1};

Words filled(const Words& words) {
  return fill_placeholders("COMMAND", words, made_up_cluster(), kWorker1);
}

std::string refusal(const std::function<void()>& call) { return sentence_of(call, "(accepted)"); }

std::string refusal_of(const std::string& word) {
  return refusal([&word] { static_cast<void>(filled({word})); });
}

TEST(FillPlaceholders, KnowsTheFour) {
  EXPECT_THAT(
      filled({"--ps={ps_hosts}", "{worker_hosts}", "{job_name}", "{job_name}:{task_index}!"}),
      ElementsAre("--ps=127.0.0.1:1001,127.0.0.1:1002", "127.0.0.1:1003,127.0.0.1:1004", "worker",
                  "worker:1!"));
}

TEST(FillPlaceholders, LeavesAWordOneWord) {
  EXPECT_THAT(filled({"two words", "", "'$HOME' \"{job_name}\""}),
              ElementsAre("two words", "", "'$HOME' \"worker\""));
}

TEST(FillPlaceholders, TakesDoubledBracesForBraces) {
  EXPECT_THAT(filled({"{{}}", "{{job_name}}", "{{{job_name}}}", "{{\"index\": {task_index}}}"}),
              ElementsAre("{}", "{job_name}", "{worker}", "{\"index\": 1}"));
}

TEST(FillPlaceholders, RefusesWhatIsNoPlaceholder) {
  const std::string allowed =
      "; allowed are {ps_hosts}, {worker_hosts}, {job_name}, {task_index}, and {{ and }} for "
      "single braces";
  EXPECT_EQ(refusal_of("--i={index}"), "COMMAND: \"{index}\" in \"--i={index}\"" + allowed);
  EXPECT_EQ(refusal_of("{}"), "COMMAND: \"{}\" in \"{}\"" + allowed);
  EXPECT_EQ(refusal_of("{ps_hosts"), "COMMAND: a single { in \"{ps_hosts\"" + allowed);
  EXPECT_EQ(refusal_of("ps_hosts}"), "COMMAND: a single } in \"ps_hosts}\"" + allowed);
  EXPECT_EQ(refusal_of("{{{{{"), "COMMAND: a single { in \"{{{{{\"" + allowed);
}

TEST(SplitWords, SeparatesAtBlanksOutsideOfQuotes) {
  EXPECT_THAT(split_words("--initializer", "  mkdir -p\t'a  b'\n"),
              ElementsAre("mkdir", "-p", "a  b"));
  EXPECT_THAT(split_words("--initializer", "echo \"it's\" a'b'\"c\" ''"),
              ElementsAre("echo", "it's", "abc", ""));
}

TEST(SplitWords, KnowsNothingElseOfAShell) {
  EXPECT_THAT(split_words("--initializer", "echo $HOME;ls|wc \\n"),
              ElementsAre("echo", "$HOME;ls|wc", "\\n"));
}

TEST(SplitWords, RefusesAnOpenQuoteAndNoProgram) {
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", "echo 'a")); }),
            "--finalizer: \"echo 'a\" has an unterminated quote");
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", " ")); }),
            "--finalizer: \" \" names no program");
  EXPECT_EQ(refusal([] { static_cast<void>(split_words("--finalizer", "'' a")); }),
            "--finalizer: \"'' a\" names no program");
}

TEST(TaskVariables, AreThoseOfTfMesos) {
  const Words variables = task_variables(made_up_cluster(), kWorker1);
  EXPECT_THAT(variables, Contains("TFMESOS_PS_HOSTS=127.0.0.1:1001,127.0.0.1:1002"));
  EXPECT_THAT(variables, Contains("TFMESOS_WORKER_HOSTS=127.0.0.1:1003,127.0.0.1:1004"));
  EXPECT_THAT(variables, Contains("TFMESOS_JOB_NAME=worker"));
  EXPECT_THAT(variables, Contains("TFMESOS_TASK_INDEX=1"));
  EXPECT_THAT(variables, Contains("TFMESOS_DISTRIBUTED=1"));
}

TEST(TaskVariables, HaveATfConfigOfTheSameCluster) {
  const std::string variable = task_variables(made_up_cluster(), kWorker1).front();
  ASSERT_TRUE(variable.starts_with("TF_CONFIG="));
  const auto found = net::parse_tf_config(variable.substr(variable.find('=') + 1));
  ASSERT_TRUE(found);
  EXPECT_EQ(net::hash_of(found->cluster), net::hash_of(made_up_cluster()));
  EXPECT_EQ(found->task, kWorker1);
}

}  // namespace
}  // namespace disttf::roles
