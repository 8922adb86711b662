// The log is not read: `disttf ... 2>&1 | less`, Ctrl-S. The run continues and ends.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <regex>

#include "data/file.h"
#include "tests/process/process_test.h"
#include "tests/support/pipe.h"

namespace disttf::test_process {
namespace {

// One line for each step and trainer: many times 64 KiB, the size of a pipe.
const Words kTalkative = {"--train_steps=5000", "--log_every=1", "--dataset=digits",
                          "--batch_size=10", "--hidden_units=16"};

std::string quoted(const std::string& word) { return "'" + word + "'"; }

class PausedReader : public ProcessTest {
 protected:
  // Runs disttf with its standard error in `log`, its results in a file.
  Process& run_into(int log, const Words& arguments) {
    std::string line = "exec " + quoted(disttf_binary());
    for (const std::string& word : arguments) {
      line += " " + quoted(word);
    }
    line += " >" + quoted(result_path().string()) + " 2>/proc/" + std::to_string(getpid()) +
            "/fd/" + std::to_string(log);
    return run_program("/bin/sh", {"-c", line}, "paused");
  }
  [[nodiscard]] std::filesystem::path result_path() const { return scratch() / "results"; }
  [[nodiscard]] std::string results() const {
    std::ifstream file(result_path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Reads a descriptor that has no more writers.
  static std::string text_in(int fd) {
    std::string text;
    std::array<char, 4096> buffer{};
    fcntl(fd, F_SETFL, O_NONBLOCK);
    for (ssize_t count = 0; (count = read(fd, buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }

  test_support::Pipe pipe_;
};

TEST_F(PausedReader, DoesNotStopALaunch) {
  Process& job = run_into(pipe_.write_end.number(), Words{"launch"} + kTalkative);
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(results(), ::testing::HasSubstr("Digits accuracy: 0."));
  EXPECT_THAT(text_in(pipe_.read_end.number()), ::testing::HasSubstr("training step 1 done"));
}

TEST_F(PausedReader, DoesNotStopATaskThatIsStartedAlone) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  Process& ps = run("ps", Words{"ps"} + cluster.host_flags() + Words{"--task_index=0"});
  Process& worker = run_into(pipe_.write_end.number(), Words{"worker"} + cluster.host_flags() +
                                                           Words{"--task_index=0"} + kTalkative);
  EXPECT_TRUE(exits(worker, kExitDone));
  EXPECT_TRUE(exits(ps, kExitDone));
  EXPECT_THAT(results(), ::testing::HasSubstr("Digits accuracy: 0."));
}

// After the pause the reader finds complete lines, and the number of dropped ones.
TEST_F(PausedReader, IsToldHowManyLinesItHasMissed) {
  Process& job = run_into(pipe_.write_end.number(),
                          Words{"launch", "--workers=1"} + kTalkative + Words{"--eval_every=4999"});
  // From here on the log is read, because the end waits for lines.
  std::string text;
  while (job.wait(milliseconds(0)).timed_out) {
    std::ifstream file(result_path());
    std::string line;
    if (std::getline(file, line)) {
      text += text_in(pipe_.read_end.number());
    }
  }
  EXPECT_TRUE(exits(job, kExitDone));
  text += text_in(pipe_.read_end.number());
  const std::string missed = captured(text, "([0-9]+) log lines dropped");
  ASSERT_FALSE(missed.empty());
  // No line is torn, and the present and the dropped lines add up to all.
  const std::regex step("training step [0-9]+ done \\(global step: [0-9]+, loss: [0-9.]+\\)\n");
  const auto steps = std::distance(std::sregex_iterator(text.begin(), text.end(), step), {});
  EXPECT_EQ(count_of(text, "training step"), static_cast<std::size_t>(steps));
  EXPECT_GE(static_cast<std::size_t>(steps) + std::stoul(missed), 5000U);
}

TEST_F(PausedReader, OnATerminalMayStopIt) {
  const data::FileDescriptor terminal(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_EQ(grantpt(terminal.number()), 0);
  ASSERT_EQ(unlockpt(terminal.number()), 0);
  const data::FileDescriptor slave(open(ptsname(terminal.number()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_GE(slave.number(), 0);
  ASSERT_EQ(tcflow(slave.number(), TCOOFF), 0);
  Process& job = run_into(slave.number(), Words{"launch"} + kTalkative);
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(results(), ::testing::HasSubstr("Digits accuracy: 0."));
}

// Results are kept until a reader takes them, all of them and in order.
TEST_F(PausedReader, OfResultsIsWaitedForAtTheEnd) {
  const std::filesystem::path fifo = scratch() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  const data::FileDescriptor keeper(open(fifo.c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(fcntl(keeper.number(), F_SETPIPE_SZ, 4096), 4096);
  Process& job = run_program(
      "/bin/sh",
      {"-c", "exec " + quoted(disttf_binary()) +
                 " launch --train_steps=200 --eval_every=1 --dataset=digits --log_every=1 "
                 "--hidden_units=16 >" +
                 quoted(fifo.string())},
      "launch");
  ASSERT_TRUE(says(job, "training step 200 done"));
  ASSERT_TRUE(says(job, "the run is over after step 200"));
  std::string text;
  fcntl(keeper.number(), F_SETFL, O_NONBLOCK);
  while (job.wait(milliseconds(1)).timed_out) {
    text += text_in(keeper.number());
  }
  EXPECT_TRUE(exits(job, kExitDone));
  text += text_in(keeper.number());
  std::size_t at = 0;
  for (int step = 1; step <= 200 && at != std::string::npos; ++step) {
    at = text.find("After " + std::to_string(step) + " training step(s)", at);
    EXPECT_NE(at, std::string::npos) << "step " << step;
  }
  EXPECT_THAT(text, ::testing::HasSubstr("Digits accuracy: 0."));
}

}  // namespace
}  // namespace disttf::test_process
