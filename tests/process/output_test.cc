// Results that cannot be written: a full disk, a reader that has exited, a closed standard output,
// a file size limit. And outputs that are not regular files.
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

#include "data/file.h"
#include "tests/process/process_test.h"
#include "tests/support/pipe.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

const Words kShort = {"--dataset=digits", "--train_steps=20", "--hidden_units=8"};
const char* const kLost = "cannot write to standard output: ";

class Output : public ProcessTest {
 protected:
  // Runs disttf through a shell, with `redirection` after its arguments; `before` comes first.
  Process& run_by_shell(const Words& arguments, const std::string& redirection,
                        const std::string& before = "") {
    std::string line = before + "exec '" + disttf_binary() + "'";
    for (const std::string& word : arguments) {
      line += " '" + word + "'";
    }
    return run_program("/bin/sh", {"-c", line + " " + redirection}, arguments.front());
  }
  // Runs a few steps, saved in `run`.
  void train() {
    Process& job = run("train", Words{"train", "--train_dir=run"} + kShort);
    ASSERT_TRUE(exits(job, kExitDone));
  }
  // Returns one command for each way of printing. REQUIRES: train().
  [[nodiscard]] static std::vector<Words> commands() {
    return {{"--help"},
            {"--version"},
            {"launch", "--help"},
            {"completion", "bash"},
            {"model", "show", "cnn"},
            {"doctor"},
            {"ls", "run"},
            {"checkpoint", "ls", "run"},
            {"checkpoint", "verify", "run"},
            {"checkpoint", "show", "run"},
            {"show", "run"},
            {"show", "run", "--json"},
            {"plot", "run"},
            {"cp", "run", "copy"},
            {"export", "run", "--format=npz", "--output=model.npz", "--overwrite"},
            {"predict", "run", "--dataset=digits"},
            {"render", "compose", "--insecure"},
            Words{"launch"} + kShort,
            Words{"launch", "--", "/bin/echo", "text"},
            Words{"train"} + kShort};
  }
  [[nodiscard]] fs::path fifo() const {
    const fs::path path = scratch() / "fifo";
    fs::remove(path);
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    return path;
  }
};

TEST_F(Output, ThatIsFullIsSaidByEveryCommand) {
  train();
  for (const Words& words : commands()) {
    Process& command = run_by_shell(words, ">/dev/full");
    EXPECT_TRUE(exits(command, kExitError)) << ::testing::PrintToString(words);
    EXPECT_TRUE(says(command, kLost)) << ::testing::PrintToString(words);
  }
}

TEST_F(Output, ThatIsClosedIsSaid) {
  for (const Words& words : {Words{"--version"}, Words{"doctor"}, Words{"launch"} + kShort}) {
    Process& command = run_by_shell(words, ">&-");
    EXPECT_TRUE(exits(command, kExitError)) << ::testing::PrintToString(words);
    EXPECT_TRUE(says(command, kLost)) << ::testing::PrintToString(words);
  }
}

// The reader exits before anything is written: the shell waits for its end first.
TEST_F(Output, WhoseReaderHasGoneIsSaidAndEndsNoRun) {
  for (const Words& words : {Words{"--version"}, Words{"doctor"}, Words{"launch"} + kShort}) {
    const fs::path gone = fifo();
    Process& command = run_by_shell(
        words, ">&3", "exec 4<>'" + gone.string() + "' 3>'" + gone.string() + "' 4<&-; ");
    EXPECT_TRUE(exits(command, kExitError)) << ::testing::PrintToString(words);
    EXPECT_TRUE(says(command, kLost)) << ::testing::PrintToString(words);
  }
}

TEST_F(Output, BeyondALimitOfFileSizesIsSaid) {
  Process& command = run_by_shell({"launch", "--help"}, ">out", "ulimit -f 1; ");
  EXPECT_TRUE(exits(command, kExitError));
  EXPECT_TRUE(says(command, std::string(kLost) + "File too large"));
}

TEST_F(Output, OfErrorsThatIsFullEndsNothing) {
  Process& job = run_by_shell(Words{"launch"} + kShort, "2>/dev/full");
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(job.standard_output(), ::testing::HasSubstr("Digits accuracy: 0."));
}

TEST_F(Output, AFailureKeepsItsOwnExitCode) {
  Process& command = run_by_shell({"checkpoint", "ls", "no_such_place"}, ">/dev/full");
  EXPECT_TRUE(exits(command, kExitUsage));
}

// A limit of 64 KiB: no checkpoint is saved, as on a full disk, and the run continues.
TEST_F(Output, ACheckpointBeyondALimitOfFileSizesCostsAWarning) {
  Process& job = run_by_shell(Words{"launch", "--dataset=digits", "--train_steps=40",
                                    "--hidden_units=100", "--save_steps=10", "--train_dir=run"},
                              "", "ulimit -f 64; ");
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "no checkpoint was saved: .*File too large"));
  EXPECT_THAT(job.standard_error(), ::testing::Not(::testing::HasSubstr("was killed by signal")));
}

// ---- outputs that are not regular files

TEST_F(Output, AFifoStaysOneInEveryCommand) {
  train();
  for (const Words& words :
       {Words{"cp", "run/checkpoint-00000020/model.safetensors.index.json"},
        Words{"export", "run", "--overwrite", "--format=npz", "--output"},
        Words{"plot", "run", "--output"}, Words{"render", "compose", "--insecure", "--output"}}) {
    const fs::path path = fifo();
    const std::string name = words.front() == "plot" ? "fifo.svg" : "fifo";
    if (name != "fifo") {
      fs::remove(scratch() / name);
      fs::rename(path, scratch() / name);
    }
    Process& unread = run("unread", words + Words{name});
    EXPECT_TRUE(exits(unread, words.front() == "cp" ? kExitBadData : kExitError))
        << ::testing::PrintToString(words);
    EXPECT_TRUE(says(unread, "which no process reads")) << ::testing::PrintToString(words);
    const data::FileDescriptor reader(
        open((scratch() / name).c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    constexpr int kRoom = 1 << 20;
    ASSERT_GT(fcntl(reader.number(), F_SETPIPE_SZ, kRoom), 0);
    Process& written = run("written", words + Words{name});
    EXPECT_TRUE(exits(written, kExitDone)) << ::testing::PrintToString(words);
    std::array<char, 16> buffer{};
    EXPECT_GT(read(reader.number(), buffer.data(), buffer.size()), 0)
        << ::testing::PrintToString(words);
    EXPECT_TRUE(fs::is_fifo(scratch() / name)) << ::testing::PrintToString(words);
  }
}

TEST_F(Output, ADeviceBehindALinkStays) {
  train();
  fs::create_symlink("/dev/null", scratch() / "link");
  for (const Words& words :
       {Words{"cp", "run/checkpoint-00000020/model.safetensors.index.json", "link"},
        Words{"export", "run", "--format=npz", "--output", "link"},
        Words{"train", "--metrics_textfile=link", "--metrics_file=link"} + kShort}) {
    Process& command = run("command", words);
    EXPECT_TRUE(exits(command, kExitDone)) << ::testing::PrintToString(words);
    EXPECT_TRUE(fs::is_symlink(scratch() / "link")) << ::testing::PrintToString(words);
  }
}

// A FIFO without a reader must not delay training.
TEST_F(Output, AMetricsFifoIsNotWaitedFor) {
  const fs::path path = fifo();
  Process& job =
      run("train", Words{"train", "--metrics_textfile=fifo", "--metrics_file=fifo"} + kShort);
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_TRUE(says(job, "--metrics_file: fifo cannot be written"));
  EXPECT_TRUE(fs::is_fifo(path));
}

TEST_F(Output, ToStandardOutputIsTheResultAlone) {
  train();
  Process& copy =
      run("cp", {"cp", "run/checkpoint-00000020/model.safetensors.index.json", "/dev/stdout"});
  EXPECT_TRUE(exits(copy, kExitDone));
  EXPECT_THAT(copy.standard_output(), ::testing::StartsWith("{"));
  EXPECT_THAT(copy.standard_output(), ::testing::Not(::testing::HasSubstr("Copied")));
  EXPECT_TRUE(says(copy, "Copied 1 file"));
}

// The log is not read: `disttf ... 2>&1 | less`, Ctrl-S. The run continues and ends.

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

// `disttf launch --log_format json`: every line on standard error is one JSON object.

using nlohmann::json;

class JsonLog : public ProcessTest {
 protected:
  Process& launch(const Words& arguments) {
    return run("launch", Words{"launch", "--log_format=json"} + arguments);
  }
  // Returns the messages of `task`; fails on a line that is not a log line.
  static std::vector<std::string> messages_of(const std::string& task, const Process& job) {
    std::vector<std::string> messages;
    std::istringstream lines(job.standard_error());
    for (std::string line; std::getline(lines, line);) {
      const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
      EXPECT_TRUE(object.is_object()) << line;
      if (!object.is_object()) {
        continue;
      }
      for (const char* key : {"time", "level", "task", "message"}) {
        EXPECT_TRUE(object.contains(key) && object[key].is_string()) << key << ": " << line;
      }
      if (object.value("task", "") == task) {
        messages.push_back(object.value("level", "") + ": " + object.value("message", ""));
      }
    }
    return messages;
  }
};

using ::testing::Contains;
using ::testing::HasSubstr;

TEST_F(JsonLog, OfALaunchIsOneObjectALine) {
  Process& job = launch({"--train_steps=40", "--log_every=1", "--chaos=1,100", "--dataset=digits"});
  EXPECT_TRUE(exits(job, kExitDone));
  EXPECT_THAT(messages_of("launch", job), Contains(HasSubstr("info: chaos: seed 1")));
  EXPECT_THAT(messages_of("ps:0", job), Contains(HasSubstr("info: Started server")));
  EXPECT_THAT(messages_of("worker:0", job), Contains(HasSubstr("global step: 40,")));
  EXPECT_THAT(messages_of("worker:1", job), Contains(HasSubstr("info: Digits accuracy: 0.")));
  EXPECT_THAT(job.standard_output(), ::testing::StartsWith("After 40 training step(s)"));
}

// It is reported before the flags are parsed.
TEST_F(JsonLog, OfAWrongFlagIsAnObjectHoweverTheFormatIsSpelled) {
  for (const Words& format : {Words{"--log_format=json"}, Words{"--log_format", "json"},
                              Words{"--log-format=json"}, Words{"--log-format", "json"}}) {
    Process& job = run("worker", Words{"worker"} + format + Words{"--nope"});
    EXPECT_TRUE(exits(job, kExitUsage));
    EXPECT_THAT(messages_of("worker", job),
                Contains(HasSubstr("error: \"--nope\" is not a flag of disttf worker")));
  }
}

TEST_F(JsonLog, SaysOfATaskThatWasKilledWhatItIs) {
  Process& job = launch(endless() + Words{"--dataset=digits", "--restart=never"});
  ASSERT_TRUE(says(job, "training step 3 done"));
  kill(children_of(job.pid()).at(0), SIGKILL);
  EXPECT_TRUE(exits(job, kExitLostPeers));
  EXPECT_THAT(messages_of("launch", job),
              Contains("error: [ps:0] was killed by signal 9 (Killed); stopping the others"));
}

TEST_F(JsonLog, SaysOfAWrongFlagWhatItIs) {
  Process& job = launch({"--train_steps=none"});
  EXPECT_TRUE(exits(job, kExitUsage));
  EXPECT_THAT(messages_of("launch", job), Contains(HasSubstr("error: --train_steps: ")));
}

// Programs that do not support the JSON log.
TEST_F(JsonLog, WrapsWhatACommandPrints) {
  Process& job = launch({"--ps=0", "--workers=1", "--", "/bin/sh", "-c",
                         "echo a result; echo 'no \"JSON\"' >&2; echo '{{\"a\": 1}}' >&2; "
                         "printf 'wrong \\377\\n' >&2; exit 3"});
  EXPECT_TRUE(exits(job, 3));
  EXPECT_EQ(job.standard_output(), "[worker:0] a result\n");
  const std::vector<std::string> messages = messages_of("worker:0", job);
  EXPECT_THAT(messages, Contains("info: no \"JSON\""));
  EXPECT_THAT(messages, Contains("info: {\"a\": 1}"));
  EXPECT_THAT(messages, Contains(HasSubstr("info: wrong ")));
  EXPECT_THAT(messages_of("launch", job),
              Contains("warning: [worker:0] ended with exit code 3; stopping the others"));
}

}  // namespace
}  // namespace disttf::test_process
