// The interface between a running launch and its control address.
//
// Values and an interface, which the launcher implements, and tests too.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "net/http/http_reply.h"
#include "net/wire/address.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/launcher.h"
#include "run/process/progress.h"

namespace disttf::roles {

enum class TaskState : std::uint8_t {
  kRunning,
  kFrozen,    // by --chaos, for a moment
  kStopping,  // signalled to end; it restarts, or the run ends
  kWaiting,   // for its restart
  kDone,      // has ended with 0
  kEnded,     // has ended otherwise
};
[[nodiscard]] const char* name_of(TaskState state) noexcept;  // "running"

struct TaskStatus {
  net::TaskId id;
  net::Address address;
  TaskState state = TaskState::kRunning;
  pid_t pid = -1;  // -1: no process lives
  std::uint64_t restarts = 0;
  std::chrono::system_clock::time_point since;  // start of the state
};

struct JobStatus {
  std::string state;  // "training", "updating", "finished", "ending"
  pid_t pid = -1;     // launch's
  std::chrono::system_clock::time_point since;
  std::optional<Progress> progress;  // nullopt: no step yet
  std::vector<TaskStatus> tasks;     // ps, chief, workers
  std::string socket;                // of the control address; empty: none
  std::string url;                   // of the control port on loopback; empty: none
  std::string secret_file;           // of the run, made by launch; empty: none
};

// The reason why a valid request cannot be served now.
class JobRefusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class UnknownTask : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ManagedJob {
 public:
  virtual ~ManagedJob() = default;

  [[nodiscard]] virtual JobStatus status() const = 0;

  // All others throw UnknownTask and JobRefusal.
  [[nodiscard]] virtual std::string log(const net::TaskId& id) const = 0;
  [[nodiscard]] virtual std::shared_ptr<net::HttpLineStream> follow(const net::TaskId& id) = 0;
  // SIGTERM, and a new process at the same address. The following return a sentence for the caller.
  virtual std::string restart(const net::TaskId& id) = 0;
  // SIGKILL, and a new process.
  virtual std::string replace(const net::TaskId& id) = 0;
  // Sets other counts and settings. Continues after the return. Throws std::invalid_argument, too.
  virtual std::string update(const LaunchUpdate& wanted) = 0;
  // Saves a checkpoint of the present state.
  virtual std::string save() = 0;
  // Collects a timeline of so many steps; a record reports the result.
  virtual std::string trace(std::uint32_t steps) = 0;
  // Does the same as SIGTERM.
  virtual std::string stop() = 0;
  // A link to the run's page, good for one browser.
  virtual std::string make_page_link() = 0;
};

}  // namespace disttf::roles
