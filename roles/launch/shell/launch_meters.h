// The launch's own metrics, about its run and its tasks.
//
// Not thread-safe: the launcher's one thread owns it.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

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

}  // namespace disttf::roles
