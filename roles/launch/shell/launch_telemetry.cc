#include "roles/launch/shell/launch_telemetry.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/json/json_text.h"
#include "roles/launch/shell/control_verbs.h"
#include "run/monitor/core/record.h"
#include "run/monitor/shell/process_facts.h"

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

LaunchRecords::LaunchRecords(std::function<void(const std::string&)> take)
    : take_(std::move(take)) {}

void LaunchRecords::task(const TaskStatus& status, const SupervisedTask& state) {
  const std::string name = task_name(status.id);
  const auto [found, is_new] = known_.try_emplace(name, status);
  const TaskStatus before = std::exchange(found->second, status);
  // Pages and files get a record only for a change.
  if (!is_new && before.pid == status.pid && before.state == status.state &&
      before.restarts == status.restarts && before.address == status.address) {
    return;
  }
  take_(TaskRecord{.task = name,
                   .address = net::to_string(status.address),
                   .state = name_of(status.state),
                   .pid = status.pid,
                   .restarts = status.restarts,
                   .since = record_time(status.since)}
            .to_line(record_time()));
  // A change of the pid is what identifies a new process: the state may be kRunning before and
  // after.
  const bool has_begun = status.pid > 0 && (is_new || before.pid != status.pid);
  // A process of a known task was replaced or ended: report its end before the start of the next
  // one.
  if (!is_new && before.pid > 0 && before.pid != status.pid && state.ending) {
    const bool is_well = state.ending->signal == 0 && state.ending->exit_code == 0;
    event(!is_well, name, state.ending->signal != 0 ? "killed" : "ended",
          name + " " + to_string(*state.ending) +
              (status.state == TaskState::kWaiting ? "; it will be restarted" : ""));
  }
  if (has_begun) {
    event(false, name, status.restarts == 0 ? "started" : "restarted",
          name + (status.restarts == 0 ? " was started at " : " was restarted at ") +
              net::to_string(status.address));
  }
}

void LaunchRecords::state(const std::string& state) {
  if (std::exchange(state_, state) != state) {
    take_(StateRecord{.state = state}.to_line(record_time()));
  }
}

void LaunchRecords::asked(const std::string& task, const std::string& sentence) {
  event(false, task, "asked", sentence);
}

void LaunchRecords::event(bool is_warning, const std::string& task, const std::string& what,
                          const std::string& text) {
  take_(EventRecord{.level = is_warning ? EventRecord::Level::kWarning : EventRecord::Level::kInfo,
                    .task = task,
                    .what = what,
                    .text = text}
            .to_line(record_time()));
}

}  // namespace disttf::roles
