#include "roles/monitor/core/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/json_depth.h"
#include "net/wire/text.h"
#include "roles/monitor/core/record.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;

constexpr float kMicroseconds = 1e6F;
constexpr std::size_t kMostTextDepth = 4;
constexpr std::size_t kMostRanks = 10'000;

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string name_of(const net::TaskId& task) {
  return std::string(net::job_name(task.job)) + ":" + std::to_string(task.index);
}

// Below 0 stays so: it has not come.
std::int64_t whole(float seconds) {
  const float limited = std::clamp(seconds, -1.0F, 1e6F);
  return limited < 0 ? -1 : std::llround(limited * kMicroseconds);
}

float seconds_of(const Json& json) { return json.get<float>() / kMicroseconds; }

Json json_of(const TrainerSample& sample) {
  Json json = Json::array({sample.step});
  for (const float seconds : sample.seconds) {
    json.push_back(whole(seconds));
  }
  json.push_back(sample.last_ps.index);
  json.push_back(whole(sample.last_ps.seconds));
  return json;
}

Json json_of(const RangeSample& sample) {
  Json arrived = Json::array();
  for (const float seconds : sample.arrived) {
    arrived.push_back(whole(seconds));
  }
  return Json::array({sample.step, whole(sample.apply), std::move(arrived)});
}

void put(Json& json, const net::TaskId& task, const ProcessFacts& process) {
  json["task"] = name_of(task);
  json["host"] = net::cut_utf8(process.host, 64);
  json["pid"] = process.pid;
  json["rss_bytes"] = process.resident_bytes;
  json["cpu_seconds"] = process.cpu_seconds;
}

ProcessFacts process_of(const Json& json) {
  return {.host = net::one_line(json.at("host").get<std::string>()),
          .pid = json.at("pid").get<std::int64_t>(),
          .resident_bytes = json.at("rss_bytes").get<std::uint64_t>(),
          .cpu_seconds = json.at("cpu_seconds").get<double>()};
}

net::TaskId task_of(const Json& json) {
  const auto name = json.at("task").get<std::string>();
  const std::size_t colon = name.find(':');
  const auto job = net::job_from_name(std::string_view(name).substr(0, colon));
  if (!job || colon == std::string::npos || name.size() - colon > 7 ||
      name.find_first_not_of("0123456789", colon + 1) != std::string::npos ||
      colon + 1 == name.size()) {
    throw std::invalid_argument("no task");
  }
  return {.job = *job, .index = std::stoul(name.substr(colon + 1))};
}

// With as many of the newest samples as fit.
template <typename Sample>
std::string with_samples(Json json, const std::vector<Sample>& samples) {
  std::size_t room = net::kMaxMetricsBytes - std::min(net::kMaxMetricsBytes, dumped(json).size());
  Json& list = json["samples"] = Json::array();
  for (auto sample = samples.rbegin(); sample != samples.rend(); ++sample) {
    Json each = json_of(*sample);
    const std::size_t size = dumped(each).size() + 1;
    if (size + 16 > room) {
      break;
    }
    room -= size;
    list.push_back(std::move(each));
  }
  std::reverse(list.begin(), list.end());
  return dumped(json);
}

// Calls `read` with the object, which may throw what nlohmann does.
template <typename Metrics, typename Read>
std::optional<Metrics> parsed(std::string_view text, Read read) {
  if (text.size() > net::kMaxMetricsBytes || data::json_depth(text) > kMostTextDepth) {
    return std::nullopt;
  }
  try {
    return read(Json::parse(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

// An older one does not tell which ps was last.
TrainerSample trainer_sample_of(const Json& json) {
  TrainerSample sample{.step = json.at(0).get<std::uint64_t>()};
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    sample.seconds[stage] = seconds_of(json.at(stage + 1));
  }
  if (json.size() > kStages + 2) {
    sample.last_ps = {.index = json.at(kStages + 1).get<std::uint32_t>(),
                      .seconds = seconds_of(json.at(kStages + 2))};
  }
  return sample;
}

RangeSample range_sample_of(const Json& json) {
  RangeSample sample{
      .step = json.at(0).get<std::uint64_t>(), .apply = seconds_of(json.at(1)), .arrived = {}};
  if (json.at(2).size() > kMostRanks) {
    throw std::invalid_argument("too many ranks");
  }
  for (const Json& each : json.at(2)) {
    sample.arrived.push_back(seconds_of(each));
  }
  return sample;
}

}  // namespace

std::string to_json(const TrainerMetrics& metrics) {
  Json json;
  put(json, metrics.task, metrics.process);
  json["isa"] = metrics.isa;
  json["threads"] = metrics.threads;
  json["step"] = metrics.step;
  json["pushes"] = metrics.pushes;
  json["dropped"] = metrics.dropped;
  return with_samples(std::move(json), metrics.samples);
}

std::string to_json(const PsMetrics& metrics) {
  Json json;
  put(json, metrics.task, metrics.process);
  json["step"] = metrics.step;
  json["generation"] = metrics.generation;
  json["range"] = {metrics.range_begin, metrics.range_end};
  json["pushes"] = metrics.pushes;
  json["applied"] = metrics.applied;
  json["repeats"] = metrics.repeats;
  json["dropped"] = metrics.dropped;
  json["staleness_sum"] = metrics.staleness_sum;
  json["standing"] = metrics.standing;
  json["has_backup"] = metrics.has_backup;
  std::string present;
  for (const bool is_present : metrics.present) {
    present += is_present ? '1' : '0';
  }
  json["present"] = present;
  return with_samples(std::move(json), metrics.samples);
}

std::optional<TrainerMetrics> trainer_metrics_from_json(std::string_view text) {
  return parsed<TrainerMetrics>(text, [](const Json& json) {
    TrainerMetrics metrics{.task = task_of(json),
                           .process = process_of(json),
                           .isa = net::one_line(json.at("isa").get<std::string>()),
                           .threads = json.at("threads").get<std::size_t>(),
                           .step = json.at("step").get<std::uint64_t>(),
                           .pushes = json.at("pushes").get<std::uint64_t>(),
                           .dropped = json.at("dropped").get<std::uint64_t>(),
                           .samples = {}};
    for (const Json& each : json.at("samples")) {
      metrics.samples.push_back(trainer_sample_of(each));
    }
    return metrics;
  });
}

std::optional<PsMetrics> ps_metrics_from_json(std::string_view text) {
  return parsed<PsMetrics>(text, [](const Json& json) {
    PsMetrics metrics{.task = task_of(json),
                      .process = process_of(json),
                      .step = json.at("step").get<std::uint64_t>(),
                      .generation = json.at("generation").get<std::uint64_t>(),
                      .range_begin = json.at("range").at(0).get<std::uint64_t>(),
                      .range_end = json.at("range").at(1).get<std::uint64_t>(),
                      .pushes = json.at("pushes").get<std::uint64_t>(),
                      .applied = json.at("applied").get<std::uint64_t>(),
                      .repeats = json.at("repeats").get<std::uint64_t>(),
                      .dropped = json.at("dropped").get<std::uint64_t>(),
                      .staleness_sum = json.at("staleness_sum").get<std::uint64_t>(),
                      .standing = net::one_line(json.at("standing").get<std::string>()),
                      .has_backup = json.at("has_backup").get<bool>(),
                      .present = {},
                      .samples = {}};
    for (const char each : json.at("present").get<std::string>()) {
      metrics.present.push_back(each == '1');
    }
    for (const Json& each : json.at("samples")) {
      metrics.samples.push_back(range_sample_of(each));
    }
    return metrics;
  });
}

std::string to_line(const TrainerMetrics& metrics, double time) {
  Json json = {{"kind", "metrics"}, {"time", time}};
  put(json, metrics.task, metrics.process);
  json["isa"] = metrics.isa;
  json["threads"] = metrics.threads;
  json["step"] = metrics.step;
  json["pushes"] = metrics.pushes;
  json["dropped"] = metrics.dropped;
  if (!metrics.samples.empty()) {
    Json& stages = json["stages"];
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      double sum = 0;
      for (const TrainerSample& sample : metrics.samples) {
        sum += static_cast<double>(sample.seconds[stage]);
      }
      stages[std::string(kStageNames[stage])] = sum / static_cast<double>(metrics.samples.size());
    }
  }
  return dumped(json);
}

std::string to_line(const PsMetrics& metrics, double time) {
  Json json = {{"kind", "metrics"}, {"time", time}};
  put(json, metrics.task, metrics.process);
  json["step"] = metrics.step;
  json["generation"] = metrics.generation;
  json["range"] = {metrics.range_begin, metrics.range_end};
  json["pushes"] = metrics.pushes;
  json["applied"] = metrics.applied;
  json["repeats"] = metrics.repeats;
  json["dropped"] = metrics.dropped;
  if (metrics.applied > 0) {
    json["staleness"] =
        static_cast<double>(metrics.staleness_sum) / static_cast<double>(metrics.applied);
  }
  if (!metrics.standing.empty()) {
    json["standing"] = metrics.standing;
    json["has_backup"] = metrics.has_backup;
  }
  if (!metrics.samples.empty()) {
    double sum = 0;
    for (const RangeSample& sample : metrics.samples) {
      sum += static_cast<double>(sample.apply);
    }
    json["stages"] = {{"apply", sum / static_cast<double>(metrics.samples.size())}};
  }
  return dumped(json);
}

}  // namespace disttf::roles
