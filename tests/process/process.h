// A program under test: started with its arguments, what it prints collected, waited for.
//
// Waiting is for what it prints or for its end, always with a deadline; there is nothing to sleep
// for. A thread of its own empties the pipes, so that no program blocks on a full one. The process
// is killed and reaped when its object goes, and by the kernel when the test dies. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
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
  std::string name;  // how messages call it
};

// How a process ended.
struct Ending {
  bool timed_out = false;  // it has not
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
  // No effect once it has been reaped. With SIGSTOP, the process has stopped when this returns, or
  // ended.
  void send(int signal) const;
  // Standard input stays open and empty until then.
  void close_input();

  // Its end. The output is complete then, but for what descendants that live on still print.
  Ending wait(std::chrono::milliseconds limit = kPatience);
  // False when standard output and standard error end, or `limit` passes, without `count` lines in
  // which `pattern` (ECMAScript) is found. Lines that were printed before the call count.
  [[nodiscard]] bool wait_for_line(const std::string& pattern,
                                   std::chrono::milliseconds limit = kPatience,
                                   std::size_t count = 1);

  // What it has printed so far.
  [[nodiscard]] std::string standard_output() const;
  [[nodiscard]] std::string standard_error() const;
  // Everything that a failed test wants to see.
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
  data::FileDescriptor input_;
  data::FileDescriptor stop_;  // an eventfd: ends collect()
  bool reaped_ = false;
  Ending ending_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  Stream output_;
  Stream error_;
  bool ended_ = false;  // both streams; guarded by mutex_
  std::thread thread_;
};

// The processes whose parent is `parent`, from /proc.
[[nodiscard]] std::vector<pid_t> children_of(pid_t parent);
// The command line of a process, from /proc; empty when there is none.
[[nodiscard]] std::vector<std::string> command_line_of(pid_t pid);
// The child of `launch` that is a task, "worker:1"; none: the launch has not started it, or has
// forked and the child has not become disttf yet.
[[nodiscard]] std::optional<pid_t> pid_of_task(pid_t launch, const std::string& task);
// True once all of the processes have ended, reaped or not.
[[nodiscard]] bool wait_until_gone(const std::vector<pid_t>& pids,
                                   std::chrono::milliseconds limit = kPatience);

}  // namespace disttf::test_process
