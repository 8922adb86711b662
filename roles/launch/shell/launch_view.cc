#include "roles/launch/shell/launch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/json/json_members.h"
#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/run_chart.h"
#include "run/monitor/core/view_fields.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
using data::member_of;

// The shortest time between two samples of a task: below it a rate has no meaning.
constexpr double kLeastSeconds = 0.2;

std::vector<double> values_of(const OrderedJson& run, std::string_view series) {
  const OrderedJson& values = member_of(member_of(member_of(run, "series"), series), "values");
  std::vector<double> all;
  for (std::size_t each = 0; each < values.size(); ++each) {
    if (const auto value = number_at(values, each)) {
      all.push_back(*value);
    }
  }
  return all;
}

std::optional<double> last_of(const OrderedJson& run, std::string_view series) {
  const std::vector<double> values = values_of(run, series);
  return values.empty() ? std::nullopt : std::optional(values.back());
}

// The task's newest records; null: none.
const OrderedJson& records_of(const OrderedJson& run, const std::string& task) {
  static const OrderedJson kNone;
  const OrderedJson& tasks = member_of(run, "tasks");
  for (std::size_t each = 0; tasks.is_array() && each < tasks.size(); ++each) {
    if (text_of_field(tasks[each], "task") == task) {
      return tasks[each];
    }
  }
  return kNone;
}

std::optional<SlowestTask> slowest_of(const OrderedJson& run) {
  const OrderedJson& slowest = member_of(member_of(run, "frontier"), "slowest");
  const auto slower = number_of(slowest, "slower");
  if (!slower) {
    return std::nullopt;
  }
  return SlowestTask{.task = text_of_field(slowest, "task"),
                     .stage = text_of_field(slowest, "stage"),
                     .slower = *slower,
                     .is_alone = text_of_field(slowest, "than") == "its fastest"};
}

// Sets a field; null if the value is unknown.
void set(OrderedJson& json, const char* key, const std::optional<double>& value) {
  OrderedJson& field = json[key];
  if (value) {
    field = *value;
  }
}
void set(OrderedJson& json, const char* key, const std::optional<std::uint64_t>& value) {
  OrderedJson& field = json[key];
  if (value) {
    field = *value;
  }
}
void set(OrderedJson& json, const char* key, const std::string& text) {
  OrderedJson& field = json[key];
  if (!text.empty()) {
    field = text;
  }
}

OrderedJson json_of(const LaunchTask& task) {
  OrderedJson json;
  set(json, "task", task.task);
  set(json, "address", task.address);
  set(json, "state", task.state);
  set(json, "pid", task.pid);
  set(json, "restarts", task.restarts);
  set(json, "since", task.since);
  set(json, "step", task.step);
  set(json, "wait", task.wait);
  set(json, "doing", task.doing);
  set(json, "bytes_sent_per_second", task.sent);
  set(json, "bytes_received_per_second", task.received);
  set(json, "rss_bytes", task.rss_bytes);
  set(json, "cpu", task.cpu);
  return json;
}

}  // namespace

void LaunchMeter::measure(const OrderedJson& metrics, LaunchTask& task) {
  const auto time = number_of(metrics, "time");
  const auto cpu = number_of(metrics, "cpu_seconds");
  if (!time || !cpu) {
    return;
  }
  const Sample now{.time = *time,
                   .sent = number_of(metrics, "bytes_sent"),
                   .received = number_of(metrics, "bytes_received"),
                   .cpu_seconds = *cpu};
  // The first sample has no rates; the fields stay empty until the next one.
  const auto [found, is_first] = samples_.emplace(task.task, now);
  Sample& before = found->second;
  const double seconds = now.time - before.time;
  const auto rate = [seconds](std::optional<double> newer, std::optional<double> older) {
    return newer && older ? std::optional(std::max(0.0, *newer - *older) / seconds) : std::nullopt;
  };
  if (!is_first && now.cpu_seconds < before.cpu_seconds) {
    before = now;  // another process, whose counters start anew
    // Otherwise the older sample stays the base, so that frequent calls still yield a rate.
  } else if (seconds >= kLeastSeconds) {
    const Sample old = before;
    before = now;
    before.sent_rate = rate(now.sent, old.sent);
    before.received_rate = rate(now.received, old.received);
    before.cpu = rate(now.cpu_seconds, old.cpu_seconds);
  }
  task.sent = before.sent_rate;
  task.received = before.received_rate;
  task.cpu = before.cpu;
}

void LaunchMeter::estimate_end(const OrderedJson& run, double now, LaunchView& view) {
  if (!view.step || !view.train_steps) {
    return;
  }
  if (!first_step_ || *first_step_ > *view.step) {  // the run was rolled back
    first_step_ = view.step;
    first_at_ = now;
  }
  const double left =
      *view.train_steps > *view.step ? static_cast<double>(*view.train_steps - *view.step) : 0;
  const auto step_seconds = number_of(member_of(run, "frontier"), "step_seconds");
  // Prefers the step time measured on the critical path to the mean since this view began.
  if (step_seconds && *step_seconds > 0) {
    view.seconds_left = left * *step_seconds;
  } else if (*view.step > *first_step_) {
    view.seconds_left = left * (now - first_at_) / static_cast<double>(*view.step - *first_step_);
  }
}

LaunchView LaunchMeter::take(const OrderedJson& status, const OrderedJson& run, double now) {
  const OrderedJson& tasks = member_of(status, "tasks");
  if (!tasks.is_array()) {
    // The status is required. The run's records are optional: fields are empty without them.
    throw Failure(kError,
                  "unexpected answer from the launch: " + net::quoted(data::json_text(status)));
  }
  const OrderedJson& newest = member_of(run, "now");
  LaunchView view{.pid = count_of(status, "pid"),
                  .state = text_of_field(status, "state"),
                  .since = text_of_field(status, "since"),
                  .step = count_of(status, "step"),
                  .train_steps = count_of(status, "train_steps"),
                  .loss = number_of(status, "loss"),
                  .images_per_second = number_of(newest, "images_per_second"),
                  .validation_accuracy = last_of(run, "validation_accuracy"),
                  .test_accuracy = last_of(run, "test_accuracy"),
                  .seconds_left = {},
                  .losses = values_of(run, "loss"),
                  .are_rows = text_of_field(member_of(run, "run"), "model") == "program",
                  .numbers = newest_numbers(run),
                  .slowest = slowest_of(run),
                  .result = text_of_field(member_of(run, "result"), "line"),
                  .tasks = {}};
  for (const OrderedJson& of_status : tasks) {
    LaunchTask& task = view.tasks.emplace_back();
    task.task = text_of_field(of_status, "task");
    const OrderedJson& records = records_of(run, task.task);
    task.address = text_of_field(of_status, "address");
    task.state = text_of_field(of_status, "state");
    task.since = text_of_field(of_status, "since");
    task.doing = text_of_field(records, "doing");
    task.pid = count_of(of_status, "pid");
    task.restarts = count_of(of_status, "restarts");
    task.step = count_of(records, "step");
    task.wait = number_of(records, "wait_share");
    task.rss_bytes = number_of(records, "rss_bytes");
    measure(records, task);
  }
  estimate_end(run, now, view);
  return view;
}

std::string launch_json(const LaunchView& view) {
  OrderedJson json;
  set(json, "state", view.state);
  set(json, "pid", view.pid);
  set(json, "since", view.since);
  set(json, "step", view.step);
  set(json, "train_steps", view.train_steps);
  set(json, "loss", view.loss);
  set(json, "images_per_second", view.images_per_second);
  set(json, "validation_accuracy", view.validation_accuracy);
  set(json, "test_accuracy", view.test_accuracy);
  set(json, "seconds_left", view.seconds_left);
  for (const auto& [name, value] : view.numbers) {
    json["numbers"][name] = value;
  }
  OrderedJson& slowest = json["slowest"];
  if (view.slowest) {
    set(slowest, "task", view.slowest->task);
    set(slowest, "stage", view.slowest->stage);
    slowest["slower"] = view.slowest->slower;
    slowest["than"] = view.slowest->is_alone ? "its fastest" : "others";
  }
  set(json, "result", view.result);
  OrderedJson& tasks = json["tasks"] = OrderedJson::array();
  for (const LaunchTask& task : view.tasks) {
    tasks.push_back(json_of(task));
  }
  return data::json_text(json) + "\n";
}

}  // namespace disttf::roles
