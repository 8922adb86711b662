// How a task ends: its exit code and one sentence that says why.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace disttf::roles {

// What a process of disttf exits with; docs/operations.md lists them for users.
enum ExitCode : int {
  kDone = 0,           // done, or told to stop after a finished run
  kError = 1,          // anything permanent that no other code names
  kUsage = 2,          // a flag, a variable of the environment or the cluster's description
  kBadData = 3,        // the data set cannot be had or is damaged
  kCannotListen = 4,   // the task's own port cannot be had
  kHungUp = 129,       // SIGHUP before the run finished: the terminal went away
  kInterrupted = 130,  // SIGINT before the run finished
  kLostPeers = 138,    // peers missing or lost: restarting the task may help
  kTerminated = 143,   // SIGTERM before the run finished
};

// What std::bad_alloc is called in a sentence, where nothing is known of what was to be held.
inline constexpr const char* kNoMemory = "there is not enough memory";

// Ends the task. Thrown anywhere in roles/, caught once in main.
class Failure : public std::runtime_error {
 public:
  // `sentence`: what happened, to whom, and what is allowed or can be done.
  Failure(int exit_code, const std::string& sentence)
      : std::runtime_error(sentence), exit_code_(exit_code) {}
  [[nodiscard]] int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// What a task ends with where `exception` is what has ended one of its threads or coroutines: a
// Failure stays what it is, anything else is kError.
[[nodiscard]] Failure failure_of(const std::exception_ptr& exception);

}  // namespace disttf::roles
