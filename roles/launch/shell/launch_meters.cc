#include "roles/launch/shell/launch_meters.h"

#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "roles/launch/shell/control_verbs.h"

namespace disttf::roles {

LaunchMeters::LaunchMeters(MetricRegistry& metrics, MetricsAddress& address)
    : metrics_(metrics),
      address_(address),
      examples_(metrics.counter(Metric::kRunExamples)),
      step_(metrics.gauge(Metric::kRunStep)),
      train_steps_(metrics.gauge(Metric::kRunTrainSteps)),
      loss_(metrics.gauge(Metric::kRunLoss)),
      rate_(metrics.gauge(Metric::kRunExamplesPerSecond)) {
  for (std::size_t each = 0; each < kStates; ++each) {
    states_[each] = &metrics.gauge(
        Metric::kChildren, {{.name = "state", .value = name_of(static_cast<TaskState>(each))}});
    // Every state has a value from the start: absent series would make sums and alerts wrong.
    states_[each]->set(0);
  }
}

void LaunchMeters::progress(const Progress& progress, TimePoint now) {
  // The rate starts anew after a roll-back, in which steps decrease.
  if (!first_ || progress.step < first_->step) {
    first_ = progress;
    first_at_ = now;
  }
  step_.set(static_cast<double>(progress.step));
  train_steps_.set(static_cast<double>(progress.train_steps));
  loss_.set(progress.loss);
  examples_.set(progress.images);
  const std::chrono::duration<double> elapsed = now - first_at_;
  // The difference is unsigned: fewer images at a step that has not decreased must not wrap it.
  if (elapsed.count() > 0 && progress.images >= first_->images) {
    rate_.set(static_cast<double>(progress.images - first_->images) / elapsed.count());
  }
}

void LaunchMeters::tasks(const JobStatus& status, const LocalTasks& tasks) {
  publish_targets(tasks);
  std::array<double, kStates> counts{};
  for (const TaskStatus& task : status.tasks) {
    const std::string name = task_name(task.id);
    auto found = children_.find(name);
    // Registered when a task appears: an update may add workers.
    if (found == children_.end()) {
      const std::vector<MetricLabel> labels = {{.name = "child", .value = name}};
      found =
          children_
              .emplace(name, Child{.running = &metrics_.gauge(Metric::kChildRunning, labels),
                                   .restarts = &metrics_.counter(Metric::kChildRestarts, labels)})
              .first;
    }
    counts[static_cast<std::size_t>(task.state)] += 1;
    found->second.running->set(task.pid > 0 ? 1 : 0);
    found->second.restarts->set(task.restarts);
  }
  for (std::size_t each = 0; each < kStates; ++each) {
    states_[each]->set(counts[each]);
  }
}

// In the format of Prometheus' service discovery over HTTP.
void LaunchMeters::publish_targets(const LocalTasks& tasks) {
  if (address_.target().empty()) {
    return;
  }
  nlohmann::ordered_json group = {{"targets", nlohmann::ordered_json::array({address_.target()})}};
  for (const auto& task : tasks) {
    if (task->metrics_port) {
      group["targets"].push_back(address_.target_at(task->metrics_port->address().port));
    }
  }
  if (address_.is_https()) {
    group["labels"] = {{"__scheme__", "https"}};
  }
  address_.set_targets(data::json_text(nlohmann::ordered_json::array({group})) + "\n");
}

}  // namespace disttf::roles
