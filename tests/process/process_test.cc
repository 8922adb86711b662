#include "tests/process/process_test.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <regex>
#include <system_error>

#include "data/mnist.h"

namespace disttf::test_process {
namespace {

namespace fs = std::filesystem;

// Creates the link under another name and renames it, because several test programs do this at
// once.
void link_to(const fs::path& target, const fs::path& link) {
  if (fs::is_symlink(link) && fs::read_symlink(link) == target) {
    return;
  }
  const fs::path temporary = link.string() + "." + std::to_string(getpid());
  fs::create_symlink(target, temporary);
  fs::rename(temporary, link);
}

// Links the .gz files, so that nothing is written beside the originals.
fs::path prepare_data_directory() {
  fs::path directory = test_data_directory();
  fs::create_directories(directory);
  if (has_mnist()) {
    for (const std::string& name : mnist_gz_names()) {
      link_to(fs::absolute(mnist_directory() / name), directory / name);
    }
  } else {
    std::fprintf(stderr, "%s holds no MNIST: training on the built-in digits\n",
                 mnist_directory().c_str());
  }
  return directory;
}

}  // namespace

ProcessTest::ProcessTest() {
  std::string pattern = (fs::temp_directory_path() / "disttf-process-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "cannot create " + pattern);
  }
  scratch_ = pattern;
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become this process's children
}

ProcessTest::~ProcessTest() {
  if (HasFailure()) {
    for (const Process& process : processes_) {
      std::fprintf(stderr, "%s\n", process.report().c_str());
    }
  }
  processes_.clear();
  for (const pid_t orphan : children_of(getpid())) {
    kill(orphan, SIGKILL);
    waitpid(orphan, nullptr, 0);
  }
  std::error_code ignored;
  fs::remove_all(scratch_, ignored);
}

Process& ProcessTest::run(const std::string& name, const Words& arguments,
                          const Variables& environment) {
  return processes_.emplace_back(ProcessOptions{.program = disttf_binary(),
                                                .arguments = arguments,
                                                .environment = environment,
                                                .working_directory = scratch_,
                                                .name = name});
}

Process& ProcessTest::run_task(const ClusterOnLoopback& cluster, net::Job job, std::size_t index,
                               const Words& more) {
  const std::string command(net::job_name(job));
  return run(command + " " + std::to_string(index),
             Words{command, "--task_index=" + std::to_string(index)} + cluster.host_flags() +
                 data_flags() + more);
}

Tasks ProcessTest::run_cluster(const ClusterOnLoopback& cluster, const Words& more) {
  Tasks tasks;
  for (std::size_t index = 0; index < cluster.tasks().ps.size(); ++index) {
    tasks.ps.push_back(&run_task(cluster, net::Job::kPs, index, more));
  }
  for (std::size_t rank = 0; rank < cluster.tasks().trainer_count(); ++rank) {
    const net::TaskId task = cluster.tasks().trainer(rank);
    tasks.trainers.push_back(&run_task(cluster, task.job, task.index, more));
  }
  return tasks;
}

void ProcessTest::lose_a_primary(const ClusterOnLoopback& cluster, const Words& flags,
                                 Tasks& tasks) {
  ASSERT_TRUE(says(tasks.chief(), "range 1: view .* with a backup"));
  ASSERT_TRUE(says(tasks.chief(), "global step: [2-9][0-9],"));
  tasks.ps[1]->send(SIGKILL);
  ASSERT_TRUE(killed(*tasks.ps[1], SIGKILL));
  tasks.ps[1] = &run_task(cluster, net::Job::kPs, 1, flags);
  ASSERT_TRUE(all_exit(tasks.all(), kExitDone));
}

Process& ProcessTest::run_contradicting_worker(const Words& chief_flags,
                                               const Words& worker_flags) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  run_task(cluster, net::Job::kPs, 0);
  run_task(cluster, net::Job::kWorker, 0, chief_flags);
  return run_task(cluster, net::Job::kWorker, 1, worker_flags);
}

void ProcessTest::kill_and_start_again(const ClusterOnLoopback& cluster, Tasks& tasks,
                                       const Words& ps_flags, const Words& worker_flags) {
  Process*& ps = tasks.ps[1];
  Process*& worker =
      tasks.trainers[cluster.tasks().rank_of({.job = net::Job::kWorker, .index = 1})];
  for (Process* task : {ps, worker}) {
    task->send(SIGKILL);
  }
  for (Process* task : {ps, worker}) {
    ASSERT_TRUE(killed(*task, SIGKILL));
  }
  ps = &run_task(cluster, net::Job::kPs, 1, ps_flags);
  worker = &run_task(cluster, net::Job::kWorker, 1, worker_flags);
}

Process& ProcessTest::run_program(const fs::path& program, const Words& arguments,
                                  const std::string& name) {
  return processes_.emplace_back(
      ProcessOptions{.program = program,
                     .arguments = arguments,
                     .environment = {},
                     .working_directory = scratch_,
                     .name = name.empty() ? program.filename().string() : name});
}

void ProcessTest::expect_weights_of_launch(const std::vector<Process*>& trainers,
                                           const Words& flags) {
  Process& undisturbed = run("undisturbed", Words{"launch"} + flags + data_flags());
  ASSERT_TRUE(exits(undisturbed, kExitDone));
  for (Process* trainer : trainers) {
    EXPECT_EQ(weights_hash_in(*trainer), weights_hash_in(undisturbed));
  }
}

Words ProcessTest::few_images() const {
  const std::filesystem::path folder = scratch() / "few";
  std::filesystem::create_directory(folder);
  const auto put = [&](const std::string& name, char kind, std::vector<unsigned> sides,
                       auto value) {
    std::string file = {0, 0, 8, kind};
    std::size_t bytes = 1;
    for (const unsigned side : sides) {
      file += {0, 0, static_cast<char>(side >> 8U), static_cast<char>(side & 255U)};
      bytes *= side;
    }
    for (std::size_t i = 0; i < bytes; ++i) file += static_cast<char>(value(i));
    std::ofstream(folder / name, std::ios::binary) << file;
  };
  // A class is a frequency along each row.
  const auto pixel = [](std::size_t i) { return i % 28 * (i / 784 % 10 + 1) * 9 + i / 784 % 7; };
  for (const auto& [part, count] : {std::pair{"train", 500U}, std::pair{"t10k", 100U}}) {
    put(part + std::string("-images-idx3-ubyte"), 3, {count, 28, 28}, pixel);
    put(part + std::string("-labels-idx1-ubyte"), 1, {count}, [](std::size_t i) { return i % 10; });
  }
  return {"--data=" + folder.string(), "--data_dir=" + (scratch() / "few_data").string()};
}

::testing::AssertionResult ProcessTest::all_exit_in(const std::vector<Process*>& processes,
                                                    int exit_code, milliseconds limit) {
  const auto begin = std::chrono::steady_clock::now();
  const auto result = all_exit(processes, exit_code, limit);
  const auto elapsed = std::chrono::steady_clock::now() - begin;
  RecordProperty("ms_to_end", std::to_string(std::chrono::ceil<milliseconds>(elapsed).count()));
  return result;
}

std::vector<Process*> Tasks::all() const {
  std::vector<Process*> processes = ps;
  processes.insert(processes.end(), trainers.begin(), trainers.end());
  return processes;
}

fs::path mnist_directory() { return source_directory() / ".." / "shared" / "mnist"; }

std::vector<std::string> mnist_gz_names() {
  std::vector<std::string> names;
  for (const data::SetFile& file : data::mnist().files) {
    names.push_back(file.gz_name());
  }
  return names;
}

bool has_mnist() {
  const std::vector<std::string> names = mnist_gz_names();
  return std::all_of(names.begin(), names.end(),
                     [](const std::string& name) { return fs::exists(mnist_directory() / name); });
}

std::string data_dir_flag() {
  static const fs::path kDirectory = prepare_data_directory();
  return "--data_dir=" + kDirectory.string();
}

Words data_flags() {
  return {data_dir_flag(), has_mnist() ? "--dataset=mnist" : "--dataset=digits"};
}

std::string data_name() { return has_mnist() ? "MNIST" : "Digits"; }

Words operator+(Words left, const Words& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

Words endless() { return {"--train_steps=1000000000", "--log_every=1", "--debug_delay_ms=10"}; }

Words impatient() { return {"--peer_timeout=1", "--worker_timeout=1", "--heartbeat_timeout=4"}; }

::testing::AssertionResult exits(Process& process, int exit_code, milliseconds limit) {
  const Ending ending = process.wait(limit);
  if (ending.exit_code == exit_code) {
    return ::testing::AssertionSuccess();
  }
  auto failure = ::testing::AssertionFailure() << process.name();
  if (ending.timed_out) {
    return failure << " had not ended after " << limit.count() << " ms";
  }
  if (ending.signal != 0) {
    return failure << " was killed by signal " << ending.signal;
  }
  return failure << " ended with " << ending.exit_code << ", not " << exit_code;
}

::testing::AssertionResult all_exit(const std::vector<Process*>& processes, int exit_code,
                                    milliseconds limit) {
  auto failure = ::testing::AssertionFailure();
  bool all = true;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (Process* process : processes) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
    if (const auto result = exits(*process, exit_code, std::max(left, milliseconds{0})); !result) {
      failure << (all ? "" : "; ") << result.message();
      all = false;
    }
  }
  return all ? ::testing::AssertionSuccess() : failure;
}

::testing::AssertionResult killed(Process& process, int signal, milliseconds limit) {
  const Ending ending = process.wait(limit);
  if (ending.signal == signal) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << process.name() << " was not killed by signal " << signal
                                       << " but ended with " << ending.exit_code;
}

::testing::AssertionResult says(Process& process, const std::string& pattern, milliseconds limit) {
  if (process.wait_for_line(pattern, limit)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << process.name() << " did not print: " << pattern;
}

::testing::AssertionResult says_times(Process& process, std::size_t count,
                                      const std::string& pattern, milliseconds limit) {
  if (process.wait_for_line(pattern, limit, count)) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure()
         << process.name() << " did not print " << count << " times: " << pattern;
}

std::string captured(const std::string& text, const std::string& pattern) {
  std::smatch match;
  if (!std::regex_search(text, match, std::regex(pattern))) {
    ADD_FAILURE() << "no " << pattern << " in:\n" << text;
    return {};
  }
  return match[1];
}

std::string weights_hash_in(const Process& process) {
  return captured(process.standard_output(), "Weights SHA-256: ([0-9a-f]{64})\n");
}

double accuracy_in(const Process& process) {
  const std::string text =
      captured(process.standard_output(), data_name() + " accuracy: (0\\.[0-9]{4})\n");
  return text.empty() ? 0 : std::stod(text);
}

unsigned number_from_variable(const char* variable, unsigned otherwise) {
  const char* text = std::getenv(variable);
  if (text == nullptr) {
    return otherwise;
  }
  unsigned number = 0;
  const std::string digits(text);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  EXPECT_TRUE(error == std::errc() && end == digits.data() + digits.size())
      << variable << "=" << digits << " is not a whole number";
  return number;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

}  // namespace disttf::test_process
