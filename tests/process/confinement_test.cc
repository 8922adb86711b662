// The sandbox of each running task, as the kernel reports it for all of its threads.
// tests/run/confinement_test.cc tests what the sandbox prevents.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/write.hpp>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>

#include "run/process/system_calls.h"
#include "tests/process/process_test.h"

namespace disttf::test_process {
namespace {

using ::testing::HasSubstr;

// Returns the version of landlock(7), which covers files from version 2 on, and ports from 4 on;
// less than 1 if there is none.
long landlock_version() {
  constexpr long kCreateRuleset = 444;
  constexpr int kAskVersion = 1;
  return syscall(kCreateRuleset, nullptr, 0, kAskVersion);
}

class Confined : public ProcessTest {
 protected:
  // Checks each of the process' threads.
  static void expect_confined(pid_t pid, const std::string& who) {
    std::size_t threads = 0;
    const auto tasks = std::filesystem::path("/proc") / std::to_string(pid) / "task";
    for (const auto& thread : std::filesystem::directory_iterator(tasks)) {
      std::ifstream file(thread.path() / "status");
      std::ostringstream status;
      status << file.rdbuf();
      EXPECT_THAT(status.str(), HasSubstr("\nNoNewPrivs:\t1\n")) << who;
      EXPECT_THAT(status.str(), HasSubstr("\nSeccomp:\t2\n")) << who;
      ++threads;
    }
    EXPECT_GT(threads, 0U) << who;
  }
};

TEST_F(Confined, AreThePsTheWorkersAndTheChief) {
  const ClusterOnLoopback cluster({.ps = 1, .workers = 2});
  Tasks tasks = run_cluster(cluster, {"--train_steps=100000", "--log_every=1"});
  for (Process* trainer : tasks.trainers) {
    ASSERT_TRUE(says(*trainer, "training step 2 done"));
    expect_confined(trainer->pid(), "a trainer");
  }
  expect_confined(tasks.ps[0]->pid(), "a ps");
}

TEST_F(Confined, AreALaunchAndItsTasks) {
  Process& job =
      run("launch",
          Words{"launch", "--workers=2", "--train_steps=100000", "--log_every=1"} + data_flags());
  ASSERT_TRUE(says(job, "training step 2 done"));
  expect_confined(job.pid(), "the launch");
  std::ifstream children("/proc/" + std::to_string(job.pid()) + "/task/" +
                         std::to_string(job.pid()) + "/children");
  std::size_t count = 0;
  for (pid_t child = 0; children >> child; ++count) {
    expect_confined(child, "a task of the launch");
  }
  EXPECT_EQ(count, 3U);
}

// The actions that an attacker would try in a compromised task.
TEST_F(Confined, ATaskOpensConnectsAndRunsNothingElse) {
  if (landlock_version() < 4 || prctl(PR_GET_SECCOMP) < 0) {
    GTEST_SKIP()
        << "this kernel, or this container, has no Landlock for ports (Linux 6.7), or no seccomp";
  }
  const ClusterOnLoopback cluster({.ps = 1, .workers = 1});
  const std::filesystem::path secret = scratch() / "secret";
  std::ofstream(secret) << "of another task";
  const ReservedPort other;
  const std::string where = "127.0.0.1:" + std::to_string(other.number());
  // Without --train_dir a chief temporarily keeps files in the directory of temporary files.
  const Words attempts = {
      "--train_dir=" + (scratch() / "trained").string(),
      "--debug_attempts=open:" + secret.string() + ",connect:" + where + ",exec:/bin/true"};
  for (const net::Job job : {net::Job::kPs, net::Job::kWorker}) {
    Process& task = run_task(cluster, job, 0, attempts);
    EXPECT_TRUE(says(task, "open " + secret.string() + ": Permission denied"));
    EXPECT_TRUE(says(task, "connect " + where + ": Permission denied"));
    EXPECT_TRUE(says(task, "exec /bin/true: Operation not permitted"));
  }
  // The kernel rejects the attempts: a task without a sandbox gets other errors.
  Process& free = run_task(cluster, net::Job::kPs, 0,
                           {"--confine=false", "--debug_attempts=open:" + secret.string() +
                                                   ",connect:" + where + ",exec:/bin/true"});
  EXPECT_TRUE(exits(free, kExitDone));
  EXPECT_TRUE(says(free, "open " + secret.string() + ": done"));
  EXPECT_TRUE(says(free, "connect " + where + ": Connection refused"));
}

// A folder of models gets a link to a model outside of it after the service has started.
TEST_F(Confined, FollowsNoLinkThatComesLater) {
  if (landlock_version() < 2) {
    GTEST_SKIP() << "this kernel, or this container, has no Landlock";
  }
  namespace fs = std::filesystem;
  const fs::path trained = scratch() / "trained";
  const fs::path models = scratch() / "served" / "models";  // its parent folder may be read, too
  fs::create_directories(models);
  Process& job = run("launch", {"launch", "--workers=1", "--train_steps=2", "--dataset=digits",
                                "--train_dir=" + trained.string()});
  ASSERT_TRUE(exits(job, kExitDone));
  const Words words = {"serve", models.string(), "--port=0"};
  Process& confined = run("confined", words);
  Process& free = run("free", words + Words{"--confine=false"});
  ASSERT_TRUE(says(confined, "serving at "));
  ASSERT_TRUE(says(free, "serving at "));
  fs::create_directory_symlink(trained / "checkpoint-00000002", models / "7");
  EXPECT_TRUE(says(free, "Serving version 7"));
  EXPECT_TRUE(says(confined, "cannot read .*models/7: Permission denied"));
}

}  // namespace
}  // namespace disttf::test_process

// Compares the system calls of processes of each kind with the table
// (run/process/system_calls.h): no call is missing there, none is refused, and every call in the
// table is used or has a reason there. A tracer (ptrace(2)) sees every call that a process makes
// after it has entered its sandbox.

// Defined in <linux/ptrace.h>, which cannot be included beside <sys/ptrace.h>.
#ifndef PTRACE_GET_SYSCALL_INFO
#define PTRACE_GET_SYSCALL_INFO 0x420e
#endif

namespace disttf::test_process {
namespace {

using roles::ProcessKind;
using roles::SystemCall;

struct Calls {
  std::set<int> made;
  std::set<int> refused;  // with EPERM
};
using CallsOfKinds = std::map<ProcessKind, Calls>;

// Determines the kind from the first arguments.
ProcessKind kind_of(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/cmdline");
  std::string word;
  std::getline(file, word, '\0');
  std::getline(file, word, '\0');
  if (word == "ps") return ProcessKind::kPs;
  if (word == "worker" || word == "chief" || word == "train") return ProcessKind::kTrainer;
  if (word == "evaluator") return ProcessKind::kEvaluator;
  if (word == "serve") return ProcessKind::kServe;
  return word == "launch" ? ProcessKind::kLauncher : ProcessKind::kCommand;
}

// Reads "Tgid:\t4711" of /proc/PID/status; -1: the process has ended.
pid_t number_in_status(pid_t thread, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(thread) + "/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(name + ":")) return std::stoi(line.substr(name.size() + 1));
  }
  return -1;
}

// Runs a program and all of its children to their end, on the calling thread.
class Tracer {
 public:
  explicit Tracer(CallsOfKinds& calls) : calls_(calls) {}

  // -1 until the program has started.
  [[nodiscard]] pid_t pid() const { return pid_; }

  // Returns the exit code; -1: tracing is not possible here.
  int run(const Words& words, const std::string& output) {
    const pid_t child = fork();
    if (child == 0) become(words, output);
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) return -1;
    constexpr auto kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                              PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, 0, kOptions) != 0) return -1;
    threads_[child].is_known = true;
    go_on(child, 0);
    pid_ = child;
    int exit_code = -1;
    for (pid_t thread = 0; (thread = waitpid(-1, &status, __WALL)) > 0;) {
      if (WIFEXITED(status) || WIFSIGNALED(status)) {
        if (thread == child) exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        threads_.erase(thread);
      } else {
        go_on(thread, stopped(thread, status));
      }
    }
    return exit_code;
  }

 private:
  struct Thread {
    bool is_known = false;
    int call = -1;
    bool confines = false;  // the current call adds a filter
  };
  struct Confined {
    ProcessKind kind = ProcessKind::kCommand;
    bool is = false;
  };

  [[noreturn]] static void become(const Words& words, const std::string& output) {
    const int fd = open(output.c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    std::vector<std::string> all = {disttf_binary()};
    all.insert(all.end(), words.begin(), words.end());
    std::vector<char*> arguments;
    for (std::string& word : all) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(127);
    raise(SIGSTOP);
    execv(arguments.front(), arguments.data());
    _exit(127);
  }

  static void go_on(pid_t thread, int signal) { ptrace(PTRACE_SYSCALL, thread, 0, signal); }

  // Returns the signal to deliver.
  int stopped(pid_t thread, int status) {
    const int signal = WSTOPSIG(status);
    if (signal == (SIGTRAP | 0x80)) {
      at_call(thread);
      return 0;
    }
    if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8)) {
      processes_[thread] = {.kind = kind_of(thread), .is = false};
      return 0;
    }
    const bool is_first = !std::exchange(threads_[thread].is_known, true);
    const bool is_event = status >> 16 != 0 || signal == SIGTRAP;
    return is_event || (is_first && signal == SIGSTOP) ? 0 : signal;
  }

  // A forked process has the kind of its parent.
  Confined& process_of(pid_t thread) {
    const pid_t process = number_in_status(thread, "Tgid");
    const auto found = processes_.find(process);
    if (found != processes_.end()) return found->second;
    const auto parent = processes_.find(number_in_status(process, "PPid"));
    return processes_[process] = parent == processes_.end() ? Confined{} : parent->second;
  }

  void at_call(pid_t thread) {
    struct {  // see ptrace(2)
      std::uint8_t op;
      std::uint8_t padding[3];
      std::uint32_t arch;
      std::uint64_t instruction_pointer;
      std::uint64_t stack_pointer;
      union {
        struct {
          std::uint64_t number;
          std::uint64_t arguments[6];
        } entry;
        struct {
          std::int64_t value;
          std::uint8_t is_error;
        } exit;
      };
    } info{};
    constexpr std::uint8_t kEntry = 1;
    constexpr std::uint8_t kExit = 2;
    if (ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), thread, sizeof info,
               &info) <= 0) {
      return;
    }
    Thread& of = threads_[thread];
    of.is_known = true;
    Confined& process = process_of(thread);
    if (info.op == kEntry) {
      of.call = static_cast<int>(info.entry.number);
      of.confines = of.call == SYS_prctl && info.entry.arguments[0] == PR_SET_SECCOMP;
      if (process.is) calls_[process.kind].made.insert(of.call);
    } else if (info.op == kExit) {
      if (process.is && info.exit.value == -EPERM) calls_[process.kind].refused.insert(of.call);
      if (of.confines && info.exit.value == 0) process.is = true;
    }
  }

  CallsOfKinds& calls_;
  std::atomic<pid_t> pid_ = -1;
  std::map<pid_t, Thread> threads_;
  std::map<pid_t, Confined> processes_;
};

std::string name_of_call(int number) {
  for (const SystemCall& call : roles::system_calls()) {
    if (call.number == number) return std::string(call.name);
  }
  return "call " + std::to_string(number);
}

bool is_listed(int number, ProcessKind kind) {
  for (const SystemCall& call : roles::system_calls()) {
    if (call.number == number && call.is_of(kind)) return true;
  }
  return false;
}

class SystemCalls : public ProcessTest {
 protected:
  // Returns true if it exited with 0.
  bool traced(const Words& words) {
    Tracer tracer(calls_);
    const int code = tracer.run(words, output_);
    std::ifstream file(output_);
    EXPECT_EQ(code, kExitDone) << file.rdbuf();
    return code == kExitDone;
  }
  // Sends it a request once it answers, and ends it.
  void traced_server(const Words& words, std::uint16_t port) {
    Tracer tracer(calls_);
    std::atomic<bool> has_ended = false;
    std::thread asks([&] {
      asio::io_context context;
      while (!has_ended && !asked(context, port)) {
        std::this_thread::yield();
      }
      if (const pid_t pid = tracer.pid(); !has_ended && pid > 0) kill(pid, SIGTERM);
    });
    EXPECT_EQ(tracer.run(words, output_), kExitTerminated);
    has_ended = true;
    asks.join();
  }
  static bool asked(asio::io_context& context, std::uint16_t port) {
    asio::ip::tcp::socket socket(context);
    std::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), port}, error);
    if (error) return false;
    asio::write(socket,
                asio::buffer(std::string("GET /v2 HTTP/1.1\r\nHost: localhost\r\n"
                                         "Connection: close\r\n\r\n")),
                error);
    std::string answer;
    asio::read(socket, asio::dynamic_buffer(answer), error);
    return true;
  }

  const std::string output_ = scratch() / "output";
  CallsOfKinds calls_;
};

TEST_F(SystemCalls, OfEachKindAreThoseOfTheTable) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "builds with sanitizers have no lists of calls";
#endif
  if (Tracer probe(calls_); probe.run({"--version"}, output_) == -1) {
    GTEST_SKIP() << "this container does not allow tracing (ptrace)";
  }
  const std::string run = scratch() / "run";
  ASSERT_TRUE(
      traced({"launch", "--ps=2", "--workers=2", "--chief", "--evaluator", "--ps_replicas=2",
              "--dataset=digits", "--data_dir=" + (scratch() / "data").string(), "--train_steps=40",
              "--eval_every=20", "--save_steps=20", "--train_dir=" + run, "--page",
              "--metrics_port=0", "--control=" + (scratch() / "c.sock").string()}));
  const ReservedPort port;
  traced_server({"serve", run, "--port=" + std::to_string(port.number())}, port.number());
  ASSERT_TRUE(traced(
      {"export", run + "/checkpoint-00000040", "--format=onnx", "--output=" + run + "/x.onnx"}));
  ASSERT_TRUE(traced({"show", run}));
  ASSERT_TRUE(traced({"doctor"}));
  ASSERT_EQ(calls_.size(), roles::kListedKinds);
  for (const auto& [kind, calls] : calls_) {
    for (const int call : calls.made) {
      EXPECT_TRUE(is_listed(call, kind))
          << name_of(kind) << " makes " << name_of_call(call) << ", which is not in the table";
    }
    for (const int call : calls.refused) {
      ADD_FAILURE() << name_of(kind) << " was denied the call " << name_of_call(call);
    }
    for (const SystemCall& call : roles::system_calls()) {
      EXPECT_TRUE(!call.is_of(kind) || !call.reason.empty() || calls.made.contains(call.number))
          << name_of(kind) << " never makes " << call.name << ", and the table gives no reason";
    }
  }
}

}  // namespace
}  // namespace disttf::test_process
