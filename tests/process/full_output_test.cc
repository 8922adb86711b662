// Results that cannot be written: a full disk, a reader that has exited, a closed standard output,
// a file size limit. And outputs that are not regular files.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <string>

#include "data/file.h"
#include "tests/process/process_test.h"

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

}  // namespace
}  // namespace disttf::test_process
