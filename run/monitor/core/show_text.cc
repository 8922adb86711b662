#include "run/monitor/core/show_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/run_chart.h"
#include "run/monitor/core/text_table.h"
#include "run/run_config.h"
#include "run/setting.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
using data::member_of;

constexpr std::size_t kShownEvents = 20;
constexpr std::size_t kShownCheckpoints = 10;
// In the order of a step.
constexpr std::array<const char*, 7> kShownStages = {"pull", "load", "forward", "backward",
                                                     "push", "wait", "apply"};

std::string plain(const OrderedJson& value) {
  return net::one_line(value.is_string() ? value.get<std::string>() : data::json_text(value));
}

// The newest entries of the list, at most `most`.
std::span<const OrderedJson> newest(const OrderedJson& list, std::size_t most) {
  const auto* const all = list.get_ptr<const OrderedJson::array_t*>();
  return all == nullptr ? std::span<const OrderedJson>()
                        : std::span(*all).last(std::min(all->size(), most));
}

// "MNIST, mlp of 79510 parameters, 2 trainers and 1 ps, sync"
std::string run_lines(const OrderedJson& view, const std::string& name, std::size_t width) {
  const OrderedJson& run = member_of(view, "run");
  std::vector<std::string> parts = {net::one_line(name)};
  for (const char* const key : {"dataset", "model"}) {
    if (std::string text = text_of_field(run, key); !text.empty()) {
      parts.push_back(std::move(text));
    }
  }
  if (const auto count = count_of(run, "parameters")) {
    parts.push_back(fmt::format("{} {}", *count, *count == 1 ? "parameter" : "parameters"));
  }
  if (const auto count = count_of(run, "trainers")) {
    parts.push_back(fmt::format("{} {}", *count, *count == 1 ? "trainer" : "trainers"));
  }
  if (const auto count = count_of(run, "ps")) {
    parts.push_back(fmt::format("{} ps", *count));
  }
  if (std::string mode = text_of_field(run, "mode"); !mode.empty()) {
    parts.push_back(std::move(mode));
  }
  return wrapped(parts, width);
}

std::string result_lines(const OrderedJson& view, std::size_t width) {
  const OrderedJson& run = member_of(view, "run");
  const OrderedJson& now = member_of(view, "now");
  const OrderedJson& result = member_of(view, "result");
  std::vector<std::string> parts;
  const std::string line = text_of_field(result, "line");
  parts.push_back(line.empty() ? "no result" : line);
  const auto step = count_of(result, "step") ? count_of(result, "step") : count_of(now, "step");
  const auto steps = count_of(run, "train_steps");
  if (step) {
    parts.push_back(steps ? fmt::format("step {} of {}", *step, *steps)
                          : fmt::format("step {}", *step));
  }
  const auto began = number_of(run, "began");
  // Without a result the run may still go on: the newest step counts.
  const auto ended = number_of(result, "time") ? number_of(result, "time") : number_of(now, "time");
  if (began) {
    parts.push_back("began " + time_text(*began));
  }
  if (began && ended && *ended >= *began) {
    parts.push_back("took " + duration_text(*ended - *began));
  }
  std::string text = wrapped(parts, width);
  if (const std::string hash = text_of_field(result, "weights_sha256"); !hash.empty()) {
    text += "Weights SHA-256: " + hash + "\n";
  }
  return text;
}

std::string settings_lines(const OrderedJson& view, std::size_t width) {
  const OrderedJson& settings = member_of(member_of(view, "run"), "settings");
  if (!settings.is_object()) {
    return {};
  }
  TextTable table = table_with("SETTING VALUE");
  const OrderedJson changed = changed_settings(settings);
  for (const auto& [name, value] : changed.items()) {
    table.rows.push_back({name, plain(value)});
  }
  return table.rows.empty() ? "\nAll settings have their defaults.\n"
                            : "\n" + text_of(table, width);
}

std::string number_lines(const OrderedJson& view, std::size_t width) {
  TextTable table = table_with("NUMBER NEWEST");
  for (const auto& [name, value] : newest_numbers(view)) {
    table.rows.push_back({net::one_line(name), fmt::format("{:.6g}", value)});
  }
  return table.rows.empty() ? "" : "\n" + text_of(table, width);
}

std::string task_lines(const OrderedJson& view, std::size_t width) {
  TextTable table = table_with("TASK HOST:3 RESTARTS:2");
  std::vector<const char*> stages;  // those that a task has
  const OrderedJson& tasks = member_of(view, "tasks");
  for (const char* const stage : kShownStages) {
    if (std::ranges::any_of(newest(tasks, tasks.size()), [stage](const OrderedJson& task) {
          return number_of(member_of(task, "stages"), stage).has_value();
        })) {
      stages.push_back(stage);
      table.columns.push_back({.title = fmt::format("{} ms", stage), .leaves = 1});
    }
  }
  for (const OrderedJson& task : newest(tasks, tasks.size())) {
    const auto restarts = count_of(task, "restarts");
    const std::string host = text_of_field(task, "host");
    TextRow row = {text_of_field(task, "task"), host.empty() ? "-" : host,
                   restarts ? std::to_string(*restarts) : "-"};
    for (const char* const stage : stages) {
      const auto seconds = number_of(member_of(task, "stages"), stage);
      row.push_back(seconds ? fmt::format("{:.3f}", *seconds * 1000) : "-");
    }
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? "" : "\n" + text_of(table, width);
}

std::string checkpoint_lines(const OrderedJson& view, std::size_t width) {
  TextTable table = table_with("CHECKPOINT SAVED:2 SIZE WEIGHTS:1");
  for (const OrderedJson& each : newest(member_of(view, "checkpoints"), kShownCheckpoints)) {
    const auto bytes = number_of(each, "bytes");
    const auto time = number_of(each, "time");
    const std::string hash = text_of_field(each, "weights_sha256");
    table.rows.push_back({text_of_field(each, "name"), time ? time_text(*time) : "-",
                          bytes ? bytes_text(*bytes) : "-",
                          // Enough digits to tell checkpoints apart; --json has all.
                          hash.empty() ? "-" : hash.substr(0, 16)});
  }
  return table.rows.empty() ? "" : "\n" + text_of(table, width);
}

std::string event_lines(const OrderedJson& view, std::size_t width) {
  std::string text;
  for (const OrderedJson& event : newest(member_of(view, "events"), kShownEvents)) {
    const std::string task = text_of_field(event, "task");
    const std::string said = text_of_field(event, "text");
    const std::string line =
        time_text(number_of(event, "time").value_or(0)) + "  " +
        (task.empty() || said.find(task) != std::string::npos ? "" : task + ": ") +
        (said.empty() ? text_of_field(event, "what") : said);
    text += (width == 0 ? line : cut_to_width(line, width)) + "\n";
  }
  return text.empty() ? "" : "\n" + text;
}

}  // namespace

OrderedJson changed_settings(const OrderedJson& published) {
  const OrderedJson usual = data::parse_ordered_json(to_json(RunConfig{}));
  OrderedJson changed = OrderedJson::object();
  for (const Setting& setting : settings()) {
    const OrderedJson& value = member_of(published, setting.name);
    const auto* const choice = std::get_if<Choice>(&setting.value);
    // Tasks choose the others automatically.
    const bool is_given =
        !setting.about.empty() && (choice == nullptr || choice->automatic().empty());
    if (is_given && !value.is_null() && value != member_of(usual, setting.name)) {
      changed[std::string(setting.name)] = value;
    }
  }
  return changed;
}

std::string show_text(const OrderedJson& view, const std::string& name, const TextStyle& style,
                      std::size_t width) {
  std::string text = run_lines(view, name, width) + result_lines(view, width) +
                     settings_lines(view, width) + number_lines(view, width);
  const std::array<PlottedRun, 1> runs = {{{.name = name, .view = &view}}};
  Chart chart = chart_of(runs, {});
  // The lines above have named the run.
  chart.title.clear();
  if (x_axis_of(chart, 1)) {
    text += "\n" + text_of(chart, style);
  }
  return text + task_lines(view, width) + checkpoint_lines(view, width) + event_lines(view, width);
}

}  // namespace disttf::roles
