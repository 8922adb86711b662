// The supervisor of a task and a user's program with real processes. The task is this very file
// (probe_main.cc), the program a shell script.
#include "roles/launch/shell/own_program.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <string>

#include "data/file.h"
#include "tests/data/scratch.h"
#include "tests/roles/probe.h"

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

}  // namespace
}  // namespace disttf::roles
