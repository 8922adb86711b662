#include "tests/process/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "data/file.h"
#include "tests/support/loopback.h"

namespace disttf::test_process {
namespace {

using Clock = std::chrono::steady_clock;
using data::FileDescriptor;

struct Pipe {
  FileDescriptor read_end;
  FileDescriptor write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe");
  }
  return {FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers(words.size() + 1, nullptr);
  std::transform(words.begin(), words.end(), pointers.begin(),
                 [](std::string& word) { return word.data(); });
  return pointers;
}

// The test machine's own settings must not affect the program.
bool belongs_to_machine(std::string_view entry) {
  std::string name(entry.substr(0, entry.find('=')));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  // Variables with which an orchestrator describes the task that runs the tests.
  for (const char* prefix : {"tf_config", "tfmesos_", "slurm_", "nomad_", "job_completion_index",
                             "marathon_", "ompi_", "pmi_"}) {
    if (name.starts_with(prefix)) return true;
  }
  return name.ends_with("_proxy");
}

std::vector<std::string> environment_for(const std::map<std::string, std::string>& added) {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!belongs_to_machine(*entry)) {
      entries.emplace_back(*entry);
    }
  }
  for (const auto& [name, value] : added) {
    entries.push_back(std::string(name).append("=").append(value));
  }
  return entries;
}

struct ChildSetup {
  const char* program = nullptr;
  const char* directory = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  std::array<int, 3> streams{};  // become 0, 1, 2
  pid_t parent = -1;
};

// Runs between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const ChildSetup& setup) {
  constexpr int kCannotRun = 127;
  // The parent may have died before prctl(): getppid() then differs, and the child must not run on.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != setup.parent || chdir(setup.directory) != 0) {
    _exit(kCannotRun);
  }
  for (int number = 0; number < 3; ++number) {
    dup2(setup.streams.at(static_cast<std::size_t>(number)), number);
  }
  execve(setup.program, setup.arguments, setup.environment);
  _exit(kCannotRun);
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<std::chrono::milliseconds::rep>(left.count(), 0));
}

// sys/pidfd.h of glibc 2.36 lacks extern "C".
FileDescriptor open_pidfd(pid_t pid) {
  return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

// Returns whether the process behind `pidfd` ended before the deadline.
bool wait_for_end(int pidfd, Clock::time_point deadline) {
  pollfd wait{.fd = pidfd, .events = POLLIN, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&wait, 1, milliseconds_until(deadline));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

}  // namespace

Process::Process(const ProcessOptions& options) : name_(options.name) {
  Pipe input = make_pipe();
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  std::vector<std::string> words = {options.program.string()};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  for (const std::string& word : words) {
    command_line_ += (command_line_.empty() ? "" : " ") + word;
  }
  const std::vector<char*> arguments = pointers_to(words);
  std::vector<std::string> entries = environment_for(options.environment);
  const std::vector<char*> environment = pointers_to(entries);
  const ChildSetup setup{
      .program = options.program.c_str(),
      .directory = options.working_directory.c_str(),
      .arguments = arguments.data(),
      .environment = environment.data(),
      // The parent's copies of these ends close with the constructor, so that the reader sees the
      // end of file.
      .streams = {input.read_end.number(), output.write_end.number(), error.write_end.number()},
      .parent = getpid()};
  pid_ = fork();
  if (pid_ == 0) {
    become(setup);
  }
  if (pid_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot start " + words.front());
  }
  pidfd_ = open_pidfd(pid_);
  stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  input_ = std::move(input.write_end);
  output_.fd = std::move(output.read_end);
  error_.fd = std::move(error.read_end);
  thread_ = std::thread([this] { collect(); });
}

Process::~Process() {
  send(SIGKILL);
  reap(true);
  const std::uint64_t one = 1;
  // A descendant may still hold the pipes open, so the thread is woken explicitly.
  static_cast<void>(!write(stop_.number(), &one, sizeof one));
  thread_.join();
}

void Process::send(int signal) const {
  if (reaped_) {
    return;
  }
  kill(pid_, signal);
  if (signal == SIGSTOP) {
    // Its threads stop one after the other: until all have stopped, one may still answer. reap()
    // handles an end.
    siginfo_t seen{};
    waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WEXITED | WNOWAIT);
    if (seen.si_code == CLD_STOPPED) {
      waitid(P_PID, static_cast<id_t>(pid_), &seen, WSTOPPED | WNOHANG);
    }
  }
}

// The thread's loop: until both streams have ended or the object is destroyed.
void Process::collect() {
  std::array<pollfd, 3> waits{
      pollfd{.fd = output_.fd.number(), .events = POLLIN, .revents = 0},
      pollfd{.fd = error_.fd.number(), .events = POLLIN, .revents = 0},
      pollfd{.fd = stop_.number(), .events = POLLIN, .revents = 0},
  };
  const std::array<Stream*, 2> streams = {&output_, &error_};
  std::array<char, 65536> buffer{};
  while (waits[0].fd >= 0 || waits[1].fd >= 0) {
    if (poll(waits.data(), waits.size(), -1) < 0) {
      continue;  // EINTR
    }
    if (waits[2].revents != 0) {
      break;
    }
    for (std::size_t each = 0; each < streams.size(); ++each) {
      if (waits.at(each).fd < 0 || waits.at(each).revents == 0) {
        continue;
      }
      const ssize_t count = read(waits.at(each).fd, buffer.data(), buffer.size());
      if (count <= 0) {
        waits.at(each).fd = -1;  // poll ignores it from now on
        continue;
      }
      const std::lock_guard lock(mutex_);
      streams.at(each)->text.append(buffer.data(), static_cast<std::size_t>(count));
      changed_.notify_all();
    }
  }
  const std::lock_guard lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool Process::reap(bool block) {
  int status = 0;
  if (!reaped_ && waitpid(pid_, &status, block ? 0 : WNOHANG) == pid_) {
    reaped_ = true;
    ending_ = WIFSIGNALED(status) ? Ending{.signal = WTERMSIG(status)}
                                  : Ending{.exit_code = WEXITSTATUS(status)};
  }
  return reaped_;
}

Ending Process::wait(std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  if (!reaped_ && (!wait_for_end(pidfd_.number(), deadline) || !reap(false))) {
    return {.timed_out = true};
  }
  // Descendants that hold the pipes must not delay the test for long: another test checks them.
  constexpr std::chrono::seconds kLastWords{2};
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, kLastWords, [this] { return ended_; });
  return ending_;
}

bool Process::wait_for_line(const std::string& pattern, std::chrono::milliseconds limit,
                            std::size_t count) {
  const std::regex regex(pattern);
  const auto deadline = Clock::now() + limit;
  std::array<std::size_t, 2> searched{};  // up to the begin of the first line not yet searched
  std::size_t matches = 0;
  const auto found = [&] {
    const std::array<const Stream*, 2> streams = {&output_, &error_};
    for (std::size_t each = 0; each < streams.size(); ++each) {
      const std::string& text = streams.at(each)->text;
      std::size_t& begin = searched.at(each);
      for (std::size_t end = text.find('\n', begin); end != std::string::npos;
           end = text.find('\n', begin)) {
        const std::string line = text.substr(begin, end - begin);
        begin = end + 1;
        if (std::regex_search(line, regex) && ++matches >= count) {
          return true;
        }
      }
    }
    return false;
  };
  std::unique_lock lock(mutex_);
  while (!found()) {
    // Lines may have arrived during the wait, so they are searched once more.
    if (ended_ || changed_.wait_until(lock, deadline) == std::cv_status::timeout) {
      return found();
    }
  }
  return true;
}

std::string Process::standard_output() const {
  const std::lock_guard lock(mutex_);
  return output_.text;
}

std::string Process::standard_error() const {
  const std::lock_guard lock(mutex_);
  return error_.text;
}

std::string Process::report() const {
  std::ostringstream text;
  text << "=== " << name_ << ": " << command_line_ << "\n--- ";
  if (!reaped_) {
    text << "still running";
  } else if (ending_.exit_code >= 0) {
    text << "exit code " << ending_.exit_code;
  } else {
    text << "killed by signal " << ending_.signal;
  }
  text << "\n--- standard output\n"
       << standard_output() << "--- standard error\n"
       << standard_error();
  return text.str();
}

std::vector<pid_t> children_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

std::vector<std::string> command_line_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/cmdline");
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) {
    words.push_back(word);
  }
  return words;
}

std::optional<pid_t> pid_of_task(pid_t launch, const std::string& task) {
  const std::size_t colon = task.find(':');
  const std::string index = "--task_index=" + task.substr(colon + 1);
  for (const pid_t child : children_of(launch)) {
    const std::vector<std::string> words = command_line_of(child);
    if (words.size() > 2 && words[1] == task.substr(0, colon) && words[2] == index) {
      return child;
    }
  }
  return std::nullopt;
}

bool wait_until_gone(const std::vector<pid_t>& pids, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  return std::all_of(pids.begin(), pids.end(), [&](pid_t pid) {
    const FileDescriptor pidfd = open_pidfd(pid);
    return !pidfd.is_open() || wait_for_end(pidfd.number(), deadline);
  });
}

namespace {

bool is_listening(std::uint16_t port) {
  const data::FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = test_support::loopback(port);
  return ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) ==
         0;
}

}  // namespace

bool wait_until_listening(std::uint16_t port) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (!is_listening(port)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // polls, with a deadline
  }
  return true;
}

}  // namespace disttf::test_process
