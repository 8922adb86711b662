#include "roles/launch/shell/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

struct Pipe {
  data::FileDescriptor read_end;
  data::FileDescriptor write_end;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot make a pipe for a child");
  }
  return {data::FileDescriptor(ends[0]), data::FileDescriptor(ends[1])};
}

// "NAME=" of "NAME=value".
std::string_view with_equals(std::string_view entry) {
  return entry.substr(0, std::min(entry.find('='), entry.size() - 1) + 1);
}

// The environment without TF_CONFIG: flags or `variables` give a child its role, and a TF_CONFIG
// that describes this process would contradict them.
std::vector<char*> child_environment(std::vector<std::string>& variables,
                                     const std::vector<std::string>& removed) {
  // An entry that stays beside its replacement would win or lose depending on the program.
  const auto is_replaced = [&](std::string_view entry) {
    return entry.starts_with("TF_CONFIG=") ||
           std::ranges::any_of(variables,
                               [entry](const std::string& variable) {
                                 return entry.starts_with(with_equals(variable));
                               }) ||
           std::ranges::any_of(removed, [entry](const std::string& name) {
             return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
           });
  };
  // Pointers into `environ` and `variables`: both outlive the fork, and exec copies the text.
  std::vector<char*> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!is_replaced(*entry)) {
      entries.push_back(*entry);
    }
  }
  for (std::string& variable : variables) {
    entries.push_back(variable.data());
  }
  entries.push_back(nullptr);
  return entries;
}

// The descriptors of the child. Plain numbers, because they are used between fork and exec.
struct ChildFds {
  int standard_output = -1;  // -1: this process's
  int standard_error = -1;
  std::vector<int> inherited;
};

struct ChildLimits {
  bool has_cpus = false;
  cpu_set_t cpus{};
  bool has_memory = false;
  rlimit memory{};
};

ChildLimits limits_from(const ChildOptions& options) {
  ChildLimits limits;
  CPU_ZERO(&limits.cpus);
  for (const int cpu : options.cpus) {
    CPU_SET(static_cast<std::size_t>(cpu), &limits.cpus);
    limits.has_cpus = true;
  }
  if (options.memory_mib) {
    limits.has_memory = true;
    // The hard limit as well, so that the task cannot raise it again.
    limits.memory.rlim_cur = limits.memory.rlim_max = *options.memory_mib << 20U;
  }
  return limits;
}

// Turns the child into the program, between fork and exec: async-signal-safe calls only. `program`:
// null for this file.
[[noreturn]] void become(const ChildFds& fds, const ChildLimits& limits, bool leads_group,
                         pid_t parent, const char* program, char* const* arguments,
                         char* const* environment) {
  // The exit code of shells for a program that cannot be run.
  constexpr int kCannotRun = 126;
  // So that a signal can reach the child with all of its children.
  if (leads_group) {
    setpgid(0, 0);
  }
  // The order with getppid() matters: a death before this line sends no signal, and one after it
  // does.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) {
    _exit(kCannotRun);  // the launcher died before the line above
  }
  // Until exec this process has the launcher's handlers, which would report this process's signals
  // to the launcher. This file ignores SIGPIPE, SIGUSR1, SIGUSR2 and SIGXFSZ, and exec would keep
  // that. SIGHUP stays ignored if it was so from the start (nohup).
  for (const int handled : {SIGINT, SIGTERM, SIGCHLD, SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ}) {
    std::signal(handled, SIG_DFL);
  }
  if (!is_ignored(SIGHUP)) {
    std::signal(SIGHUP, SIG_DFL);
  }
  // Last, with the handlers reset: a pending signal now has its default action in this process.
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (null >= 0) {
    dup2(null, STDIN_FILENO);
  } else {
    close(STDIN_FILENO);  // an empty root has no /dev/null
  }
  // Neither call fails here: the CPUs are the launcher's own, and the limit is lowered.
  if (limits.has_cpus) {
    sched_setaffinity(0, sizeof(limits.cpus), &limits.cpus);
  }
  if (limits.has_memory) {
    setrlimit(RLIMIT_DATA, &limits.memory);
  }
  // dup2() clears close-on-exec, so the program keeps these two.
  if (fds.standard_output >= 0) {
    dup2(fds.standard_output, STDOUT_FILENO);
    dup2(fds.standard_error, STDERR_FILENO);
  }
  // The child must not inherit what libraries opened without the flag, such as accepted
  // connections.
  static_cast<void>(close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC));
  // These are inherited on purpose: the program knows their numbers.
  for (const int fd : fds.inherited) {
    if (fd >= 0) {
      fcntl(fd, F_SETFD, 0);
    }
  }
  if (program != nullptr) {
    execve(program, arguments, environment);
    _exit(kCannotRun);
  }
  // /proc names the file that runs, even if it was replaced on disk; an empty root has no /proc.
  execve("/proc/self/exe", arguments, environment);
  const auto path = getauxval(AT_EXECFN);
  execve(reinterpret_cast<const char*>(path), arguments, environment);  // NOLINT
  _exit(kCannotRun);
}

// argv of the child; `progress`: a descriptor, or -1.
std::vector<std::string> child_words(const ChildOptions& options, int progress) {
  std::vector<std::string> words = {options.name};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  if (options.listen_fd >= 0) {
    words.push_back("--listen_fd=" + std::to_string(options.listen_fd));
  }
  if (progress >= 0) {
    // The child has the same descriptor numbers until exec, and keeps this one.
    words.push_back("--progress_fd=" + std::to_string(progress));
  }
  // Last, because all words after "--" belong to the command.
  if (!options.command.empty()) {
    words.emplace_back("--");
    words.insert(words.end(), options.command.begin(), options.command.end());
  }
  return words;
}

}  // namespace

ChildProcess start_child(const ChildOptions& options) {
  Pipe output = options.has_pipes ? make_pipe() : Pipe{};
  Pipe error = options.has_pipes ? make_pipe() : Pipe{};
  Pipe progress;
  if (options.progress) {
    progress = make_pipe();
    // The child must not block on a launcher that reads too slowly.
    fcntl(progress.write_end.number(), F_SETFL, O_NONBLOCK);
  }
  std::vector<std::string> words = child_words(options, progress.write_end.number());
  std::vector<char*> arguments(words.size() + 1, nullptr);
  std::transform(words.begin(), words.end(), arguments.begin(),
                 [](std::string& word) { return word.data(); });
  // A copy, because execve() takes pointers to mutable text. Everything that allocates comes before
  // fork(): another thread may hold the allocator's lock at that moment.
  std::vector<std::string> variables = options.variables;
  const std::vector<char*> environment = child_environment(variables, options.removed);
  const char* const program = options.program.empty() ? nullptr : options.program.c_str();
  ChildFds fds{.standard_output = output.write_end.number(),
               .standard_error = error.write_end.number(),
               .inherited = options.inherited};
  if (options.prints_to_error) {
    fds.standard_output = fds.standard_error = STDERR_FILENO;
  }
  fds.inherited.push_back(options.listen_fd);
  fds.inherited.push_back(progress.write_end.number());
  const ChildLimits limits = limits_from(options);
  const pid_t parent = getpid();
  sigset_t all;
  sigset_t before;
  // A signal between fork() and become() would run the launcher's handler in the child.
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the child unblocks them after resetting handlers
  const pid_t pid = fork();
  if (pid == 0) {
    become(fds, limits, options.leads_group, parent, program, arguments.data(), environment.data());
  }
  // Saved before setpgid(), which may overwrite errno.
  const int fork_error = errno;
  if (pid > 0 && options.leads_group) {
    setpgid(pid, pid);  // in both processes: a signal to the group may come before the child runs
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) {
    throw std::system_error(fork_error, std::generic_category(), "cannot start a child process");
  }
  // Returning closes the write ends here, so the pipes end when the child and its descendants do.
  return {.pid = pid,
          .standard_output = std::move(output.read_end),
          .standard_error = std::move(error.read_end),
          .progress = std::move(progress.read_end)};
}

ChildProcess start_child_with_retries(const ChildOptions& options) {
  constexpr std::chrono::milliseconds kPatience{2000};
  std::chrono::milliseconds pause{10};
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (true) {
    try {
      return start_child(options);
    } catch (const std::system_error&) {
      if (std::chrono::steady_clock::now() >= deadline) throw;
    }
    // Doubles from 10 ms: a shortage of processes often lasts only moments.
    std::this_thread::sleep_for(pause);
    pause *= 2;
  }
}

void reap_others(const std::function<bool(pid_t)>& is_own) {
  siginfo_t ended{};
  // WNOWAIT leaves an own child for its owner to reap. The loop then stops: the kernel would report
  // the same child again.
  while (waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0 &&
         !is_own(ended.si_pid)) {
    waitpid(ended.si_pid, nullptr, WNOHANG);
    ended = {};
  }
}

std::vector<pid_t> children_of(pid_t process) {
  const std::string number = std::to_string(process);
  std::ifstream children("/proc/" + number + "/task/" + number + "/children");
  std::vector<pid_t> found;
  for (pid_t each = -1; children >> each;) {
    found.push_back(each);
  }
  return found;
}

void signal_group_of(pid_t leader, int signal) {
  kill(-leader, signal);
  if (getpgid(leader) != leader) {
    kill(leader, signal);
  }
}

void signal_with_children(pid_t child, int signal) {
  // Stopped first: it starts no process while its children are read. Continued last: a shell with
  // job control ends when it sees that a child is still stopped.
  if (signal != SIGCONT) {
    kill(child, SIGSTOP);
  }
  for (const pid_t each : children_of(child)) {
    signal_group_of(each, signal);
  }
  kill(child, signal);
}

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {  // fails beyond 1024 CPUs: then no limits
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
        cpus.push_back(cpu);
      }
    }
  }
  return cpus;
}

std::optional<std::string> find_program(const std::string& name, std::string_view search_path) {
  const auto may_be_run = [](const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
           access(path.c_str(), X_OK) == 0;
  };
  // As in a shell, a name with a slash is a path and is not searched for.
  if (name.find('/') != std::string::npos) {
    return may_be_run(name) ? std::optional(name) : std::nullopt;
  }
  for (std::size_t begin = 0; !name.empty() && begin <= search_path.size();) {
    const std::size_t end = std::min(search_path.find(':', begin), search_path.size());
    const std::string_view folder = search_path.substr(begin, end - begin);
    // POSIX: an empty element of PATH is the current directory.
    const std::string path = (folder.empty() ? "." : std::string(folder)) + "/" + name;
    if (may_be_run(path)) {
      return path;
    }
    begin = end + 1;
  }
  return std::nullopt;
}

std::string log_prefix(const net::TaskId& task) { return "[" + net::task_name(task) + "]"; }

}  // namespace disttf::roles
