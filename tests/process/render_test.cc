// disttf render as a program: the destination of its text, and its exit codes.
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <utility>

#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using nlohmann::json;

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

TEST_F(Render, DcosReadsTheExampleOfAJob) {
  const std::string options = (source_directory() / "examples/own/dcos_options.json").string();
  Process& rendered = run(
      "rendered", {"render", "dcos", "--insecure", "--program=/disttf", "--options=" + options});
  EXPECT_TRUE(exits(rendered, kExitDone));
  EXPECT_EQ(rendered.standard_error(), "");
  EXPECT_THAT(rendered.standard_output(), ::testing::HasSubstr(" -m disttf.job --job_path=own "));
}

// Mesos is the test: it fetches and unpacks what an app names, and runs its command. The names of
// DC/OS become addresses of this machine.
TEST_F(Render, DcosCommandsRunTheJobOfThePackage) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const std::string client = (source_directory() / "tests/support/program_client.py").string();
  write("train.py",
        "import runpy, sys\n"
        "def main(server, log_dir, context):\n"
        "    print('job', server.server_def.job_name, log_dir, context['a'], flush=True)\n"
        "    sys.argv = ['client']\n"
        "    runpy.run_path(context['client'], run_name='__main__')\n");
  ASSERT_TRUE(
      exits(run_program("/bin/sh", {"-c",
                                    "mkdir -p src/my/path box && mv train.py src/my/path && "
                                    "cd src && python3 -m zipfile -c ../job.zip my"}),
            kExitDone));
  const json service = {
      {"name", "m"},
      {"job_url", "file://" + (scratch() / "job.zip").string()},
      {"job_path", "my/path"},
      {"job_name", "train"},
      {"job_context", json({{"client", client}, {"a", {{"b", "it's {c}"}}}}).dump(2)},
      {"shared_filesystem", (scratch() / "shared").string()}};
  const std::string options = write(
      "options.json",
      json({{"service", service}, {"parameter_server", {{"count", 1}}}, {"worker", {{"count", 1}}}})
          .dump());
  Process& rendered =
      run("rendered", {"render", "dcos", "--insecure", "--program=" + disttf_binary(),
                       "--image=mine", "--train_steps=20", "--options=" + options});
  ASSERT_TRUE(exits(rendered, kExitDone));
  EXPECT_EQ(rendered.standard_error(), "");
  std::string text = rendered.standard_output();
  for (const auto& [job, name] :
       {std::pair(net::Job::kPs, "ps-0-m.marathon[a-z.]*:2223"),
        std::pair(net::Job::kWorker, "worker-0-m.marathon[a-z.]*:2222")}) {
    text = std::regex_replace(text, std::regex(name), cluster.address(job, 0));
  }
  const json apps = json::parse(text)["apps"];
  ASSERT_FALSE(apps.at(0).contains("fetch"));
  ASSERT_EQ(apps.at(1)["fetch"], json::array({{{"uri", service["job_url"]}, {"extract", true}}}));
  ASSERT_TRUE(
      exits(run_program("/usr/bin/env", {"python3", "-m", "zipfile", "-e", "job.zip", "box"}),
            kExitDone));
  run("ps", apps.at(0)["args"].get<Words>());
  Process& worker = run_program("/usr/bin/env",
                                {"MESOS_SANDBOX=" + (scratch() / "box").string(),
                                 "PYTHONPATH=" + (source_directory() / "deploy/python").string(),
                                 "PYTHONDONTWRITEBYTECODE=1", "/bin/sh", "-c", apps.at(1)["cmd"]});
  EXPECT_TRUE(says(
      worker, "job worker " + (scratch() / "shared").string() + " \\{'b': \"it's \\{c\\}\"\\}"));
  EXPECT_TRUE(says(worker, "made-up accuracy: "));
}

}  // namespace
}  // namespace disttf::test_process
