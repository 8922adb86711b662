// How a task ends: its exit code and one sentence with the reason.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace disttf::roles {

// The exit codes of disttf; docs/operations.md lists them for users.
enum ExitCode : int {
  kDone = 0,           // done, or told to stop after a finished run
  kError = 1,          // any permanent error without a code of its own
  kUsage = 2,          // a flag, an environment variable or the cluster's description
  kBadData = 3,        // the data set is unavailable or damaged
  kCannotListen = 4,   // the task's own port is not available
  kHungUp = 129,       // SIGHUP before the run finished: the terminal was closed
  kInterrupted = 130,  // SIGINT before the run finished
  kLostPeers = 138,    // peers missing or lost: restarting the task may help
  kTerminated = 143,   // SIGTERM before the run finished
};

// The text for std::bad_alloc, if it is unknown what the memory was for.
inline constexpr const char* kNoMemory = "there is not enough memory";

// Ends the task. Thrown anywhere, caught once in main.
class Failure : public std::runtime_error {
 public:
  // `sentence`: what happened, to which task, and what is allowed or can be done.
  Failure(int exit_code, const std::string& sentence)
      : std::runtime_error(sentence), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// Returns how a task ends if `exception` has ended one of its threads or coroutines: a Failure as
// it is, anything else as kError.
[[nodiscard]] Failure failure_of(const std::exception_ptr& exception);

}  // namespace disttf::roles
