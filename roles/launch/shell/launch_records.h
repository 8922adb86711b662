// Telemetry records that only the launch can write: its tasks as processes, requests, and its own
// state.
//
// Everything runs on the one thread that runs the io_context.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/managed_job.h"

namespace disttf::roles {

class LaunchRecords {
 public:
  // `take` gets each record, a line without its end.
  explicit LaunchRecords(std::function<void(const std::string&)> take);

  // To be called whenever something may have changed; unchanged state is not recorded again.
  void task(const TaskStatus& status, const SupervisedTask& state);
  void state(const std::string& state);
  // Records a request. `task`: its task, "worker:1"; empty: the whole run.
  void asked(const std::string& task, const std::string& sentence);

 private:
  void event(bool is_warning, const std::string& task, const std::string& what,
             const std::string& text);

  std::function<void(const std::string&)> take_;
  std::map<std::string, TaskStatus> known_;
  std::string state_;
};

}  // namespace disttf::roles
