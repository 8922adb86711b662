// The launch's own metrics and records.
//
// Not thread-safe: the launcher's one thread owns it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "roles/launch/core/supervisor.h"
#include "roles/launch/shell/local_task.h"
#include "roles/launch/shell/managed_job.h"
#include "run/monitor/shell/metric_registry.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/process/progress.h"

namespace disttf::roles {

class LaunchMeters {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Both arguments must outlive it.
  LaunchMeters(MetricRegistry& metrics, MetricsAddress& address);

  void progress(const Progress& progress, TimePoint now);
  // To be called when a task's process has started or ended.
  void tasks(const JobStatus& status, const LocalTasks& tasks);

 private:
  static constexpr std::size_t kStates = static_cast<std::size_t>(TaskState::kEnded) + 1;
  struct Child {
    Gauge* running;
    Counter* restarts;
  };

  void publish_targets(const LocalTasks& tasks);

  MetricRegistry& metrics_;
  MetricsAddress& address_;
  std::array<Gauge*, kStates> states_{};
  std::map<std::string, Child> children_;  // by name
  std::optional<Progress> first_;          // the rate is measured from here
  TimePoint first_at_{};
  Counter& examples_;
  Gauge& step_;
  Gauge& train_steps_;
  Gauge& loss_;
  Gauge& rate_;
};

// Telemetry records that only the launch can write: its tasks as processes, requests, and its own
// state.
//
// Everything runs on the one thread that runs the io_context.
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
