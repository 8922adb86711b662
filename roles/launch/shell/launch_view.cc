#include "roles/launch/shell/launch_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/record.h"
#include "run/monitor/core/run_chart.h"
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
template <typename Value>
void set(OrderedJson& json, const char* key, const std::optional<Value>& value) {
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

// The text of a launch's view.

namespace {

constexpr std::size_t kSparkColumns = 40;
constexpr const char* kBoldTitle = "\x1b[1m";
constexpr const char* kWarningColour = "\x1b[33m";
constexpr const char* kNoColour = "\x1b[0m";

using Cell = std::string (*)(const LaunchTask& task);  // empty: unknown

struct Known {
  const char* title;
  unsigned leaves;  // TextColumn's
  bool is_always;   // shown even if no task has a value
  Cell cell;
};

std::string number_text(const std::optional<std::uint64_t>& number) {
  return number ? std::to_string(*number) : std::string();
}
std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.0f}", *share * 100) : std::string();
}
std::string size_text(const std::optional<double>& bytes) {
  return bytes ? bytes_text(*bytes) : std::string();
}

std::string task_cell(const LaunchTask& task) { return task.task; }
std::string state_cell(const LaunchTask& task) { return task.state; }
std::string step_cell(const LaunchTask& task) { return number_text(task.step); }
std::string wait_cell(const LaunchTask& task) { return share_text(task.wait); }
std::string rss_cell(const LaunchTask& task) { return size_text(task.rss_bytes); }

constexpr std::array kStatusColumns = {
    Known{"TASK", 0, true, task_cell},
    Known{"ADDRESS", 6, true, [](const LaunchTask& task) { return task.address; }},
    Known{"STATE", 0, true, state_cell},
    Known{"PID", 5, true, [](const LaunchTask& task) { return number_text(task.pid); }},
    Known{"RESTARTS", 4, true, [](const LaunchTask& task) { return number_text(task.restarts); }},
    Known{"SINCE", 7, true, [](const LaunchTask& task) { return task.since; }},
    Known{"STEP", 1, false, step_cell},
    Known{"WAIT %", 2, false, wait_cell},
    Known{"RSS", 3, false, rss_cell}};

constexpr std::array kTopColumns = {
    Known{"TASK", 0, true, task_cell},
    Known{"STATE", 0, true, state_cell},
    Known{"STEP", 1, true, step_cell},
    Known{"WAIT %", 2, true, wait_cell},
    Known{"OUT/s", 6, false, [](const LaunchTask& task) { return size_text(task.sent); }},
    Known{"IN/s", 7, false, [](const LaunchTask& task) { return size_text(task.received); }},
    Known{"RSS", 4, true, rss_cell},
    Known{"CPU %", 5, true, [](const LaunchTask& task) { return share_text(task.cpu); }},
    Known{"DOING", 3, true, [](const LaunchTask& task) { return task.doing; }}};

TextTable table_of(const LaunchView& view, std::span<const Known> columns) {
  TextTable table;
  table.rows.resize(view.tasks.size());
  for (const Known& column : columns) {
    const bool is_known =
        column.is_always || std::ranges::any_of(view.tasks, [&column](const LaunchTask& task) {
          return !column.cell(task).empty();
        });
    // A launch whose tasks send no records has a narrower table instead of columns of "-".
    if (!is_known) {
      continue;
    }
    table.columns.push_back({.title = column.title, .leaves = column.leaves});
    for (std::size_t each = 0; each < view.tasks.size(); ++each) {
      const std::string cell = column.cell(view.tasks[each]);
      table.rows[each].push_back(cell.empty() ? "-" : cell);
    }
  }
  return table;
}

std::vector<std::string> run_parts(const LaunchView& view, bool with_loss) {
  std::vector<std::string> parts = {fmt::format("launch {}: {}", view.pid.value_or(0), view.state)};
  if (view.step) {
    parts.push_back(fmt::format("step {} of {}", *view.step, view.train_steps.value_or(0)));
  }
  if (view.loss && with_loss) {
    parts.push_back(fmt::format("loss {:.4f}", *view.loss));
  }
  return parts;
}

std::string coloured(const std::string& lines, const char* colour, const TextStyle& style) {
  // The colour ends before the line feed, which would otherwise colour the rest of the terminal's
  // line.
  return style.colour ? colour + lines.substr(0, lines.size() - 1) + kNoColour + "\n" : lines;
}

// The progress and the measures of the run.
std::string header_of(const LaunchView& view, const TextStyle& style) {
  std::vector<std::string> parts = run_parts(view, /*with_loss=*/false);
  if (view.step && view.train_steps.value_or(0) != 0) {
    // Without the loss the step is the last part.
    parts.back() += fmt::format(" ({})", percent_text(static_cast<double>(*view.step) /
                                                      static_cast<double>(*view.train_steps)));
  }
  if (view.images_per_second.value_or(0) > 0) {
    parts.push_back(
        fmt::format("{:.0f} {}/s", *view.images_per_second, view.are_rows ? "rows" : "images"));
  }
  if (view.seconds_left) {
    parts.push_back(duration_text(*view.seconds_left) + " left");
  }
  std::string text = wrapped(parts, style.columns);
  parts.clear();
  if (view.loss) {
    const std::size_t width =
        style.columns == 0 ? kSparkColumns : std::min(kSparkColumns, style.columns / 2);
    const std::string curve = sparkline(view.losses, width, style.unicode);
    parts.push_back(fmt::format("loss {:.4f}{}{}", *view.loss, curve.empty() ? "" : " ", curve));
  }
  if (view.validation_accuracy) {
    parts.push_back(fmt::format("validation accuracy {:.4f}", *view.validation_accuracy));
  }
  if (view.test_accuracy) {
    parts.push_back(fmt::format("test accuracy {:.4f}", *view.test_accuracy));
  }
  text += parts.empty() ? "" : wrapped(parts, style.columns);
  parts.clear();
  std::size_t width = 0;
  for (const auto& [name, value] : view.numbers) {
    std::string part = fmt::format("{} {:.4g}", net::one_line(name), value);
    width += part.size() + 2;
    if (style.columns == 0 || width <= style.columns) {  // what one line has room for
      parts.push_back(std::move(part));
    }
  }
  return parts.empty() ? text : text + wrapped(parts, style.columns);
}

// `head` with a table below it; omits the last rows if there is no room.
std::string with_table(const std::string& head, const TextTable& table, const TextStyle& style) {
  const auto lines_of = [](const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count(text, '\n'));
  };
  const std::string all = text_of(table, style.columns);
  // The first line has the titles; every other one is a row.
  const std::size_t titles = all.find('\n') + 1;
  const std::string top = head + coloured(all.substr(0, titles), kBoldTitle, style);
  std::string rows = all.substr(titles);
  if (style.rows != 0 && lines_of(top) + table.rows.size() > style.rows) {
    // One line is for the sentence about omitted tasks.
    const std::size_t room = style.rows - std::min(style.rows, lines_of(top) + 1);
    std::size_t end = 0;
    for (std::size_t each = 0; each < room; ++each) {
      end = rows.find('\n', end) + 1;
    }
    rows.erase(end);
    rows += fmt::format("... and {} more tasks\n", table.rows.size() - room);
  }
  return top + rows;
}

}  // namespace

std::string run_line(const LaunchView& view, std::size_t width) {
  std::vector<std::string> parts = run_parts(view, /*with_loss=*/true);
  parts.push_back("since " + view.since);
  return wrapped(parts, width);
}

std::string status_screen(const LaunchView& view, const TextStyle& style) {
  return with_table(run_line(view, style.columns), status_table(view), style);
}

TextTable status_table(const LaunchView& view) { return table_of(view, kStatusColumns); }

std::string top_text(const LaunchView& view, const TextStyle& style) {
  std::string text = header_of(view, style);
  if (view.slowest) {
    const std::string sentence =
        fmt::format("{} is {} slower{}: {}", view.slowest->task, percent_text(view.slowest->slower),
                    view.slowest->is_alone ? kThanItsFastest : "", view.slowest->stage);
    text += coloured(wrapped({sentence}, style.columns), kWarningColour, style);
  }
  if (!view.result.empty()) {
    text += wrapped({view.result}, style.columns);
  }
  return with_table(text, table_of(view, kTopColumns), style);
}

std::string end_line(const LaunchView& view) {
  const std::string begin = fmt::format("launch {} has ended", view.pid.value_or(0));
  if (!view.result.empty()) {
    return begin + ": " + view.result + "\n";
  }
  return view.step ? begin + fmt::format("; step {} of {} was the last one seen\n", *view.step,
                                         view.train_steps.value_or(0))
                   : begin + "\n";
}

}  // namespace disttf::roles
