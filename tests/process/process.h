// A program under test: starts it with its arguments, collects its output, waits for it.
//
// A test waits for output or for the end, always with a deadline, and never sleeps. A separate
// thread empties the pipes, so that no program blocks on a full one. The process is killed and
// reaped with its object, and killed by the kernel when the test dies. Used by one thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "data/file.h"

namespace disttf::test_process {

// A wait this long has failed. A test that needs one second on an idle machine needs about a minute
// where eight programs compute beside it, or on a third of one processor.
inline constexpr std::chrono::seconds kPatience{240};

struct ProcessOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  // Added to the test's own environment, which is passed on without TF_CONFIG and proxies.
  std::map<std::string, std::string> environment;
  std::filesystem::path working_directory;
  std::string name;  // its name in messages
};

// How a process ended.
struct Ending {
  bool timed_out = false;  // the process has not ended
  int exit_code = -1;      // -1: it was killed
  int signal = 0;
};

class Process {
 public:
  // Throws std::system_error. A program that cannot be run ends with 127.
  explicit Process(const ProcessOptions& options);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  // Has no effect once the process has been reaped. With SIGSTOP, the process has stopped, or
  // ended, when this returns.
  void send(int signal) const;

  // Waits for its end. The output is then complete, except for output of descendants that are still
  // alive.
  Ending wait(std::chrono::milliseconds limit = kPatience);
  // Waits for `count` lines that match `pattern` (ECMAScript). Returns false if standard output and
  // standard error end, or `limit` passes, before. Lines printed before the call count.
  [[nodiscard]] bool wait_for_line(const std::string& pattern,
                                   std::chrono::milliseconds limit = kPatience,
                                   std::size_t count = 1);

  // Returns the output so far.
  [[nodiscard]] std::string standard_output() const;
  [[nodiscard]] std::string standard_error() const;
  // Returns everything that helps to analyse a failed test.
  [[nodiscard]] std::string report() const;

 private:
  struct Stream {
    data::FileDescriptor fd;
    std::string text;  // guarded by mutex_
  };

  void collect();
  bool reap(bool block);

  std::string name_;
  std::string command_line_;
  pid_t pid_ = -1;
  data::FileDescriptor pidfd_;
  data::FileDescriptor input_;  // keeps standard input open and empty
  data::FileDescriptor stop_;   // an eventfd: ends collect()
  bool reaped_ = false;
  Ending ending_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Stream output_;
  Stream error_;
  bool ended_ = false;  // both streams; guarded by mutex_
  std::thread thread_;
};

// Returns the processes whose parent is `parent`, from /proc.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);
// Returns the command line of a process, from /proc; empty if there is none.
[[nodiscard]] std::vector<std::string> command_line_of(pid_t pid);
// Returns the child of `launch` that is a task, "worker:1"; none: the launch has not started it, or
// has forked and the child has not yet executed disttf.
[[nodiscard]] std::optional<pid_t> pid_of_task(pid_t launch, const std::string& task);
// Returns true once all of the processes have ended, reaped or not.
[[nodiscard]] bool wait_until_gone(const std::vector<pid_t>& pids,
                                   std::chrono::milliseconds limit = kPatience);

// Waits for a server that a test has started.

// Returns false if no process listens on that port of 127.0.0.1 within kPatience.
[[nodiscard]] bool wait_until_listening(std::uint16_t port);

// Paths that the process tests need. Compiled into paths.cc alone, so that all other sources
// compile identically in every checkout, and ccache finds them.

// Returns the path of the executable under test.
[[nodiscard]] const std::string& disttf_binary();
// Returns the path of test_mirror, which serves the data set's files with faults.
[[nodiscard]] const std::string& mirror_binary();
// Returns the root of the source tree.
[[nodiscard]] const std::filesystem::path& source_directory();
// Returns a folder in the build tree for data sets, shared by all tests.
[[nodiscard]] const std::filesystem::path& test_data_directory();

}  // namespace disttf::test_process
