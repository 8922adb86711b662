// A running launch as its control address sees it: what it can be asked and told.
//
// Values and an interface; the launcher is the one, tests have others.
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

#include "net/http/http_server.h"
#include "net/wire/address.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/launcher.h"
#include "roles/process/progress.h"

namespace disttf::roles {

enum class TaskState : std::uint8_t {
  kRunning,
  kFrozen,    // by --chaos, for a moment
  kStopping,  // told to end; it is started again, or the run ends
  kWaiting,   // to be started again
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
  std::chrono::system_clock::time_point since;  // of the state
};

struct JobStatus {
  std::string state;  // "training", "updating", "finished", "ending"
  pid_t pid = -1;     // launch's
  std::chrono::system_clock::time_point since;
  std::optional<Progress> progress;  // nullopt: no step has been made yet
  std::vector<TaskStatus> tasks;     // ps, chief, workers
  std::string socket;                // of the control address; empty: none
  std::string url;                   // the same on loopback; empty: none
  std::string secret_file;           // of the run, made by launch; empty: none
};

// Why something is not done now, although it was asked for rightly.
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

  // The rest throws UnknownTask, and JobRefusal.
  [[nodiscard]] virtual std::string log(const net::TaskId& id) const = 0;
  [[nodiscard]] virtual std::shared_ptr<net::HttpLineStream> follow(const net::TaskId& id) = 0;
  // SIGTERM, and a new process at the same address. These return a sentence: what is done now.
  virtual std::string restart(const net::TaskId& id) = 0;
  // SIGKILL, and a new process.
  virtual std::string replace(const net::TaskId& id) = 0;
  // Other counts and settings. What has begun goes on after the return. Throws
  // std::invalid_argument, too.
  virtual std::string update(const LaunchUpdate& wanted) = 0;
  // A checkpoint of the state as it is.
  virtual std::string save() = 0;
  // A timeline of so many steps; a record tells what has become of it.
  virtual std::string trace(std::uint32_t steps) = 0;
  // What SIGTERM does.
  virtual std::string stop() = 0;
  // A link to the run's page, good for one browser.
  virtual std::string make_page_link() = 0;
};

}  // namespace disttf::roles
