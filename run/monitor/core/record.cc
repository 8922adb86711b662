#include "run/monitor/core/record.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <span>

#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t kMostClassNames = 64;

OrderedJson begin(std::string_view kind, double time) { return {{"kind", kind}, {"time", time}}; }

// Removes the fields of `optional`, one after the other, until the line fits.
std::string fitted(OrderedJson json, std::initializer_list<const char*> optional) {
  std::string line = data::json_text(json);
  for (const char* const key : optional) {
    if (line.size() <= kMaxRecordBytes) {
      break;
    }
    json.erase(key);
    line = data::json_text(json);
  }
  return line.size() <= kMaxRecordBytes ? line : std::string();
}

const char* mode_of(const RunConfig& config) {
  // First, since an elastic run is synchronous, too.
  if (config.elastic()) {
    return "elastic";
  }
  if (!config.sync_replicas) {
    return "async";
  }
  return config.every_gradient_counts() ? "sync" : "backup";
}

OrderedJson json_of(const math::Evaluation& evaluation) {
  OrderedJson json = {{"loss", evaluation.loss}};
  if (evaluation.is_told) {
    if (evaluation.told_accuracy) {
      json["accuracy"] = *evaluation.told_accuracy;
    }
  } else if (evaluation.classes != 0) {
    json["accuracy"] = evaluation.accuracy();
  } else {
    json["absolute_error"] = evaluation.absolute_error;
    json["squared_error"] = evaluation.squared_error;
  }
  return json;
}

// Adds to `part` of the record as many of a program's numbers as the record has room for.
void put_numbers(const OrderedJson& record, OrderedJson& part,
                 std::span<const math::ToldNumber> numbers) {
  std::size_t size = data::json_text(record).size() + std::string_view(R"(,"numbers":{})").size();
  for (const auto& [name, value] : numbers) {
    OrderedJson entry = OrderedJson::object();
    entry[name] = value;
    // Its braces are longer than the comma before it by one.
    const std::size_t length = data::json_text(entry).size() - 1;
    if (size + length <= kMaxRecordBytes) {
      size += length;
      part["numbers"][name] = value;
    }
  }
}

std::string task_text(bool is_ps, std::size_t index, const net::Cluster& cluster) {
  const net::TaskId task =
      is_ps ? net::TaskId{.job = net::Job::kPs, .index = index} : cluster.trainer(index);
  return net::task_name(task);
}

}  // namespace

std::string RunRecord::to_line(double time) const {
  OrderedJson json = begin("run", time);
  json["source"] = "chief";
  json["dataset"] = config->dataset;
  json["model"] = model;
  json["parameters"] = parameters;
  json["train_steps"] = config->train_steps;
  json["batch_size"] = config->batch_size;
  json["trainers"] = config->trainers;
  json["ps"] = ps;
  json["mode"] = mode_of(*config);
  json["step"] = step;
  // A record must fit one line; names of many classes are shown by number.
  if (!classes.empty() && classes.size() <= kMostClassNames) {
    json["classes"] = classes;
  }
  // The settings are the longest field, and the first that goes if the line is too long.
  json["settings"] = data::parse_ordered_json(shown_settings(*config));
  return fitted(std::move(json), {"settings", "classes"});
}

std::string StepRecord::to_line(double time) const {
  OrderedJson json = begin("step", time);
  json["step"] = step;
  json["loss"] = loss;
  json["learning_rate"] = learning_rate;
  json["images"] = images;
  json["images_per_second"] = images_per_second;
  put_numbers(json, json, numbers);
  return data::json_text(json);
}

std::string EvaluationRecord::to_line(double time) const {
  OrderedJson json = begin("evaluation", time);
  json["step"] = step;
  json["last"] = is_last;
  if (!task.empty()) {
    json["task"] = task;
  }
  if (validation != nullptr) {
    json["validation"] = json_of(*validation);
    put_numbers(json, json["validation"], validation->told);
  }
  if (test != nullptr) {
    json["test"] = json_of(*test);
  }
  return data::json_text(json);
}

std::vector<std::string> confusion_lines(const math::Evaluation& test, std::uint64_t step,
                                         double time) {
  std::vector<std::string> lines;
  for (std::size_t label = 0; label < test.classes && !test.confusion.empty(); ++label) {
    OrderedJson json = begin("confusion", time);
    json["step"] = step;
    json["class"] = label;
    // A row per record: a matrix of many classes would not fit one.
    json["counts"] = std::span(test.confusion).subspan(label * test.classes, test.classes);
    // A row that is too long for a record is left out.
    if (std::string line = fitted(std::move(json), {}); !line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  return lines;
}

std::string TaskRecord::to_line(double time) const {
  OrderedJson json = begin("task", time);
  json["task"] = task;
  json["address"] = address;
  json["state"] = state;
  json["pid"] = pid > 0 ? OrderedJson(pid) : OrderedJson(nullptr);
  json["restarts"] = restarts;
  json["since"] = since;
  return fitted(std::move(json), {"address"});
}

std::string CheckpointRecord::to_line(double time) const {
  OrderedJson json = begin("checkpoint", time);
  json["step"] = step;
  json["name"] = name;
  if (bytes != 0) {
    json["bytes"] = bytes;
  }
  json["seconds"] = seconds;
  if (!weights_sha256.empty()) {
    json["weights_sha256"] = weights_sha256;
  }
  return fitted(std::move(json), {});
}

std::string TraceRecord::to_line(double time) const {
  OrderedJson json = begin("trace", time);
  if (file.empty()) {
    json["why_not"] = why_not;
    return fitted(std::move(json), {});
  }
  json["file"] = file;
  json["from"] = from;
  json["steps"] = steps;
  json["missing"] = missing;
  json["clock_error_seconds"] =
      clock_error_seconds ? OrderedJson(*clock_error_seconds) : OrderedJson(nullptr);
  // In a large cluster the list of tasks may be too long.
  return fitted(std::move(json), {"missing"});
}

std::string EventRecord::to_line(double time) const {
  constexpr std::array<const char*, 3> kLevels = {"info", "warning", "error"};
  constexpr std::size_t kMostText = 1000;
  OrderedJson json = begin("event", time);
  json["level"] = kLevels.at(static_cast<std::size_t>(level));
  if (!task.empty()) {
    json["task"] = task;
  }
  json["what"] = what;
  json["text"] = net::cut_utf8(text, kMostText);
  return fitted(std::move(json), {"text"});
}

std::string StateRecord::to_line(double time) const {
  OrderedJson json = begin("state", time);
  json["state"] = state;
  return data::json_text(json);
}

std::string PictureRecord::to_line(double time) const {
  OrderedJson json = begin("picture", time);
  json["step"] = step;
  json["set"] = set;
  json["index"] = index;
  if (!label.empty()) {
    json["label"] = label;
  }
  if (!answer.empty()) {
    json["answer"] = answer;
  }
  json["png"] = net::base64(png);
  return fitted(std::move(json), {});
}

std::string ResultRecord::to_line(double time) const {
  OrderedJson json = begin("result", time);
  json["step"] = step;
  json["line"] = line;
  if (accuracy) {
    json["accuracy"] = *accuracy;
  }
  if (!weights_sha256.empty()) {
    json["weights_sha256"] = weights_sha256;
  }
  return fitted(std::move(json), {});
}

std::string critical_path_line(const CriticalPath& critical_path, const net::Cluster& cluster,
                               double time) {
  constexpr std::size_t kMostShares = 20;
  OrderedJson json = begin("frontier", time);
  json["step"] = critical_path.step;
  json["steps"] = critical_path.steps;
  json["step_seconds"] = critical_path.step_seconds;
  OrderedJson& stages = json["stages"] = OrderedJson::array();
  for (const CriticalPath::Share& share : critical_path.shares) {
    if (stages.size() == kMostShares) {
      break;  // the list is sorted, largest first
    }
    stages.push_back({{"stage", kCriticalPathStageNames[static_cast<std::size_t>(share.stage)]},
                      {"task", task_text(share.is_ps, share.index, cluster)},
                      {"seconds", share.seconds},
                      {"share", share.seconds / critical_path.step_seconds}});
  }
  json["slowest"] = nullptr;
  if (const auto& slowest = critical_path.slowest) {
    json["slowest"] = {{"task", task_text(slowest->is_ps, slowest->index, cluster)},
                       {"stage", kCriticalPathStageNames[static_cast<std::size_t>(slowest->stage)]},
                       {"slower", slowest->slower},
                       {"seconds", slowest->seconds},
                       {"than", slowest->is_alone ? "its fastest" : "others"}};
  }
  return fitted(std::move(json), {"stages"});
}

std::string slowest_text(const CriticalPath::Slowest& slowest, const net::Cluster& cluster) {
  return fmt::format("{} is {:.0f} % slower{}: {}",
                     task_text(slowest.is_ps, slowest.index, cluster), 100 * slowest.slower,
                     slowest.is_alone ? kThanItsFastest : "",
                     kCriticalPathStageNames[static_cast<std::size_t>(slowest.stage)]);
}

bool may_be_record(std::string_view line) noexcept {
  return line.starts_with('{') && line.size() <= kMaxRecordBytes &&
         // Before it is parsed: a peer's text may be nested so deep that the parser's recursion
         // overflows the stack.
         data::json_depth(line) <= kMostRecordDepth;
}

}  // namespace disttf::roles
