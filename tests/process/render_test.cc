// disttf render as a program: the destination of its text, and its exit codes.
#include <fstream>
#include <iterator>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

class Render : public ProcessTest {
 protected:
  // Writes a file of the test and returns its path.
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path path = scratch() / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  // Expects that exit code and a single line.
  static void expect_refused(Process& process, int exit_code, const std::string& sentence) {
    EXPECT_TRUE(exits(process, exit_code));
    EXPECT_TRUE(says(process, sentence));
    EXPECT_EQ(count_of(process.standard_error(), "\n"), 1U);
    EXPECT_EQ(process.standard_output(), "");
  }
};

TEST_F(Render, WritesToStandardOutputOrIntoAFile) {
  Process& printed = run("printed", {"render", "compose", "--insecure"});
  EXPECT_TRUE(exits(printed, kExitDone));
  EXPECT_EQ(printed.standard_error(), "");
  Process& written = run("written", {"render", "compose", "--insecure", "--output=a.yaml"});
  EXPECT_TRUE(exits(written, kExitDone));
  EXPECT_EQ(written.standard_output() + written.standard_error(), "");
  std::ifstream file(scratch() / "a.yaml");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(text, printed.standard_output());
  EXPECT_THAT(text, ::testing::HasSubstr("\nservices:\n"));
}

TEST_F(Render, TellsWhenItsTextCannotBeWritten) {
  expect_refused(run("no folder", {"render", "compose", "--insecure", "--output=none/a.yaml"}),
                 kExitError, "--output: cannot create a file in none: No such file or directory");
  Process& full =
      run_program("/bin/sh", {"-c", disttf_binary() + " render compose --insecure >/dev/full"});
  expect_refused(
      full, kExitError,
      "cannot write to standard output: No space left on device; results were lost or cut off");
}

TEST_F(Render, RefusesABadClusterFileInOneSentence) {
  const std::string unknown = write("unknown.toml", "wokers = 3\n");
  expect_refused(run("unknown", {"render", "slurm", "--cluster=" + unknown}), kExitUsage,
                 "--cluster: \"wokers\" is not a flag of disttf render");
  const std::string noise = write("noise.toml",
                                  "\x7f"
                                  "ELF\x01\x02[[[\xff = \n\n]");
  expect_refused(run("noise", {"render", "slurm", "--cluster=" + noise}), kExitUsage,
                 "--cluster: ");
}

TEST_F(Render, RefusesBadOptionsInOneSentence) {
  const std::string options = write("options.json", R"({"worker": {"count": "three"}})");
  expect_refused(run("options", {"render", "dcos", "--insecure", "--options=" + options}),
                 kExitUsage, "--options: worker.count is \"three\"; expected a whole number");
}

}  // namespace
}  // namespace disttf::test_process
