#include "run/monitor/core/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/record.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr float kMicroseconds = 1e6F;
constexpr const char* kFingerprintKey = "fingerprint";
constexpr const char* kProgramsKey = "programs";
constexpr std::size_t kMostTextDepth = 4;
constexpr std::size_t kMostRanks = 10'000;
constexpr std::uint64_t kMostIndex = std::numeric_limits<std::uint32_t>::max();

// Negative numbers, for gradients that have not arrived, stay negative.
std::int64_t whole(float seconds) {
  // The limits keep llround() from a value that does not fit, which would be undefined.
  const float limited = std::clamp(seconds, -1.0F, 1e6F);
  // Whole microseconds keep a sample short.
  return limited < 0 ? -1 : std::llround(limited * kMicroseconds);
}

// Rejects a peer's numbers that are fractions or out of range, which get<>() would convert.
std::uint64_t count_of(const OrderedJson& json,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() > most) {
    throw std::invalid_argument("no count");
  }
  return json.get<std::uint64_t>();
}
std::int64_t integer_of(const OrderedJson& json) {
  const bool is_too_large =
      json.is_number_unsigned() &&
      json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!json.is_number_integer() || is_too_large) {
    throw std::invalid_argument("no integer");
  }
  return json.get<std::int64_t>();
}

float seconds_of(const OrderedJson& json) { return json.get<float>() / kMicroseconds; }

// Exact, because a slice of a timeline ends where the next one begins.
std::int64_t nanoseconds(float seconds) {
  return std::llround(static_cast<double>(std::clamp(seconds, -1.0F, 1e6F)) * 1e9);
}
// A peer's duration: limited, so that sums do not overflow.
float from_nanoseconds(const OrderedJson& json) {
  const auto nanoseconds = json.get<double>();
  if (!(nanoseconds >= -1e9 && nanoseconds <= 1e15)) {
    throw std::invalid_argument("no duration");
  }
  return static_cast<float>(nanoseconds * 1e-9);
}

// A peer's time: at most that of a machine that has run for nine years.
std::int64_t time_of(const OrderedJson& json) {
  const std::int64_t nanoseconds = integer_of(json);
  if (nanoseconds < 0 || nanoseconds > std::int64_t{1} << 58U) {
    throw std::invalid_argument("no time");
  }
  return nanoseconds;
}

// Lists without names, since a report has many samples.
OrderedJson traced_json_of(const TrainerSample& sample) {
  OrderedJson json = OrderedJson::array({sample.step, sample.began});
  for (const float seconds : sample.seconds) {
    json.push_back(nanoseconds(seconds));
  }
  return json;
}

OrderedJson traced_json_of(const RangeSample& sample) {
  OrderedJson json = OrderedJson::array(
      {sample.step, sample.began, nanoseconds(sample.waited), nanoseconds(sample.apply)});
  for (const float seconds : sample.arrived) {
    json.push_back(seconds < 0 ? -1 : nanoseconds(seconds));
  }
  return json;
}

void read_traced(const OrderedJson& json, TrainerSample& sample) {
  sample.step = count_of(json.at(0));
  sample.began = time_of(json.at(1));
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    sample.seconds[stage] = from_nanoseconds(json.at(stage + 2));
  }
}

void read_traced(const OrderedJson& json, RangeSample& sample) {
  sample.step = count_of(json.at(0));
  sample.began = time_of(json.at(1));
  sample.waited = from_nanoseconds(json.at(2));
  sample.apply = from_nanoseconds(json.at(3));
  for (std::size_t rank = 4; rank < json.size(); ++rank) {
    // The size of the text bounds this list.
    sample.arrived.push_back(from_nanoseconds(json.at(rank)));
  }
}

template <typename Metrics>
void put_traced(OrderedJson& json, const Metrics& metrics) {
  if (metrics.traced.empty() && !metrics.has_more_traced) {
    return;
  }
  OrderedJson steps = OrderedJson::array();
  for (const auto& sample : metrics.traced) {
    steps.push_back(traced_json_of(sample));
  }
  json["trace"] = {{"clock", net::cut_utf8(metrics.process.clock, 64)},
                   {"more", metrics.has_more_traced},
                   {"steps", std::move(steps)}};
}

template <typename Metrics>
void take_traced(const OrderedJson& json, Metrics& metrics) {
  if (!json.contains("trace")) {
    return;
  }
  const OrderedJson& trace = json.at("trace");
  metrics.process.clock = net::one_line(trace.at("clock").get<std::string>());
  metrics.has_more_traced = trace.at("more").get<bool>();
  for (const OrderedJson& each : trace.at("steps")) {
    read_traced(each, metrics.traced.emplace_back());
  }
}

OrderedJson json_of(const TrainerSample& sample) {
  OrderedJson json = OrderedJson::array({sample.step});
  for (const float seconds : sample.seconds) {
    json.push_back(whole(seconds));
  }
  json.push_back(sample.last_ps.index);
  json.push_back(whole(sample.last_ps.seconds));
  return json;
}

OrderedJson json_of(const RangeSample& sample) {
  OrderedJson arrived = OrderedJson::array();
  for (const float seconds : sample.arrived) {
    arrived.push_back(whole(seconds));
  }
  return OrderedJson::array({sample.step, whole(sample.apply), std::move(arrived)});
}

void put(OrderedJson& json, const net::TaskId& task, const ProcessFacts& process) {
  json["task"] = net::task_name(task);
  // Bounded, so that a long name leaves room for the samples.
  json["host"] = net::cut_utf8(process.host, 64);
  json["pid"] = process.pid;
  json["rss_bytes"] = process.resident_bytes;
  json["cpu_seconds"] = process.cpu_seconds;
  json["bytes_sent"] = process.bytes_sent;
  json["bytes_received"] = process.bytes_received;
}

ProcessFacts process_of(const OrderedJson& json) {
  return {.host = net::one_line(json.at("host").get<std::string>()),
          .pid = integer_of(json.at("pid")),
          .resident_bytes = count_of(json.at("rss_bytes")),
          .cpu_seconds = json.at("cpu_seconds").get<double>(),
          .bytes_sent = count_of(json.at("bytes_sent")),
          .bytes_received = count_of(json.at("bytes_received"))};
}

net::TaskId task_of(const OrderedJson& json) {
  return net::task_from_name(json.at("task").get<std::string>());
}

// Adds as many of the newest samples as fit.
template <typename Sample>
std::string with_samples(OrderedJson json, const std::vector<Sample>& samples) {
  std::size_t room =
      net::kMaxMetricsBytes - std::min(net::kMaxMetricsBytes, data::json_text(json).size());
  OrderedJson& list = json["samples"] = OrderedJson::array();
  // The newest first: old samples say less about the present.
  for (auto sample = samples.rbegin(); sample != samples.rend(); ++sample) {
    OrderedJson each = json_of(*sample);
    const std::size_t size = data::json_text(each).size() + 1;
    // 16 bytes of reserve for the brackets and the key of the list.
    if (size + 16 > room) {
      break;
    }
    room -= size;
    list.push_back(std::move(each));
  }
  std::reverse(list.begin(), list.end());
  return data::json_text(json);
}

// Parses the text and calls `read`, which may throw as nlohmann does. nullopt: malformed.
template <typename Metrics, typename Read>
std::optional<Metrics> parsed(std::string_view text, Read read) {
  if (text.size() > net::kMaxMetricsBytes) {
    return std::nullopt;
  }
  const OrderedJson json = data::parse_ordered_json(text, kMostTextDepth);
  if (json.is_discarded()) {
    return std::nullopt;
  }
  try {
    return read(json);
  } catch (const std::exception&) {  // a peer's text is taken as a whole or not at all
    return std::nullopt;
  }
}

// Samples of older versions do not contain the last ps.
TrainerSample trainer_sample_of(const OrderedJson& json) {
  TrainerSample sample{.step = count_of(json.at(0))};
  for (std::size_t stage = 0; stage < kStages; ++stage) {
    sample.seconds[stage] = seconds_of(json.at(stage + 1));
  }
  if (json.size() > kStages + 2) {
    sample.last_ps = {
        .index = static_cast<std::uint32_t>(count_of(json.at(kStages + 1), kMostIndex)),
        .seconds = seconds_of(json.at(kStages + 2))};
  }
  return sample;
}

RangeSample range_sample_of(const OrderedJson& json) {
  RangeSample sample{.step = count_of(json.at(0)), .apply = seconds_of(json.at(1)), .arrived = {}};
  if (json.at(2).size() > kMostRanks) {
    // Bounds what a malformed list can make this process allocate.
    throw std::invalid_argument("too many ranks");
  }
  for (const OrderedJson& each : json.at(2)) {
    sample.arrived.push_back(seconds_of(each));
  }
  return sample;
}

// The fields that a task's report and its record have in common.
void put(OrderedJson& json, const TrainerMetrics& metrics) {
  put(json, metrics.task, metrics.process);
  json["isa"] = metrics.isa;
  json["threads"] = metrics.threads;
  json["step"] = metrics.step;
  json["pushes"] = metrics.pushes;
  json["dropped"] = metrics.dropped;
  if (metrics.programs != 0) {
    json[kProgramsKey] = metrics.programs;
  }
}

void put(OrderedJson& json, const PsMetrics& metrics) {
  put(json, metrics.task, metrics.process);
  json["step"] = metrics.step;
  json["generation"] = metrics.generation;
  json["range"] = {metrics.range_begin, metrics.range_end};
  json["pushes"] = metrics.pushes;
  json["applied"] = metrics.applied;
  json["repeats"] = metrics.repeats;
  json["dropped"] = metrics.dropped;
}

// The mean of `seconds` over the samples. REQUIRES: there are samples.
template <typename Sample, typename Seconds>
double mean(const std::vector<Sample>& samples, Seconds seconds) {
  double sum = 0;
  for (const Sample& sample : samples) {
    sum += static_cast<double>(seconds(sample));
  }
  return sum / static_cast<double>(samples.size());
}

}  // namespace

std::size_t most_traced_at_once(std::size_t trainers) noexcept {
  constexpr std::size_t kFixed = 64;       // bytes of a sample, at most
  constexpr std::size_t kOfATrainer = 16;  // the same
  // Half of the report is left for samples that are not traced.
  return std::clamp<std::size_t>(net::kMaxMetricsBytes / 2 / (kFixed + kOfATrainer * trainers), 1,
                                 kMostTracedAtOnce);
}

std::string to_json(const TrainerMetrics& metrics) {
  OrderedJson json;
  put(json, metrics);
  put_traced(json, metrics);
  // The samples need the rest of the text.
  if (OrderedJson told = metrics.fingerprint;
      !told.empty() && data::json_text(told).size() < net::kMaxMetricsBytes / 4) {
    json[kFingerprintKey] = std::move(told);
  }
  return with_samples(std::move(json), metrics.samples);
}

std::string to_json(const PsMetrics& metrics) {
  OrderedJson json;
  put(json, metrics);
  json["staleness_sum"] = metrics.staleness_sum;
  json["standing"] = metrics.replica_role;
  json["has_backup"] = metrics.has_backup;
  json["view"] = metrics.view;
  json["lag_updates"] = metrics.lag_updates;
  std::string present;
  for (const bool is_present : metrics.present) {
    present += is_present ? '1' : '0';
  }
  json["present"] = present;
  put_traced(json, metrics);
  return with_samples(std::move(json), metrics.samples);
}

std::optional<TrainerMetrics> trainer_metrics_from_json(std::string_view text) {
  return parsed<TrainerMetrics>(text, [](const OrderedJson& json) {
    TrainerMetrics metrics{.task = task_of(json),
                           .process = process_of(json),
                           .isa = net::one_line(json.at("isa").get<std::string>()),
                           .threads = count_of(json.at("threads")),
                           .step = count_of(json.at("step")),
                           .pushes = count_of(json.at("pushes")),
                           .dropped = count_of(json.at("dropped")),
                           .samples = {}};
    for (const OrderedJson& each : json.at("samples")) {
      metrics.samples.push_back(trainer_sample_of(each));
    }
    take_traced(json, metrics);
    if (const auto told = json.find(kFingerprintKey); told != json.end()) {
      metrics.fingerprint = told->get<std::map<std::string, std::string>>();
    }
    if (const auto programs = json.find(kProgramsKey); programs != json.end()) {
      metrics.programs = count_of(*programs);
    }
    return metrics;
  });
}

std::optional<PsMetrics> ps_metrics_from_json(std::string_view text) {
  return parsed<PsMetrics>(text, [](const OrderedJson& json) {
    PsMetrics metrics{.task = task_of(json),
                      .process = process_of(json),
                      .step = count_of(json.at("step")),
                      .generation = count_of(json.at("generation")),
                      .range_begin = count_of(json.at("range").at(0)),
                      .range_end = count_of(json.at("range").at(1)),
                      .pushes = count_of(json.at("pushes")),
                      .applied = count_of(json.at("applied")),
                      .repeats = count_of(json.at("repeats")),
                      .dropped = count_of(json.at("dropped")),
                      .staleness_sum = count_of(json.at("staleness_sum")),
                      .replica_role = net::one_line(json.at("standing").get<std::string>()),
                      .has_backup = json.at("has_backup").get<bool>(),
                      .view = count_of(json.at("view")),
                      .lag_updates = count_of(json.at("lag_updates")),
                      .present = {},
                      .samples = {}};
    for (const char each : json.at("present").get<std::string>()) {
      metrics.present.push_back(each == '1');
    }
    for (const OrderedJson& each : json.at("samples")) {
      metrics.samples.push_back(range_sample_of(each));
    }
    take_traced(json, metrics);
    return metrics;
  });
}

std::string to_line(const TrainerMetrics& metrics, double time, bool is_program) {
  OrderedJson json = {{"kind", "metrics"}, {"time", time}};
  put(json, metrics);
  if (!metrics.samples.empty()) {
    OrderedJson& stages = json["stages"];
    for (std::size_t stage = 0; stage < kStages; ++stage) {
      if (is_program && stage == static_cast<std::size_t>(Stage::kForward)) {
        continue;
      }
      // Means only: a record for each sample would be too many for a fast run.
      stages[std::string(kStageNames[stage])] = mean(
          metrics.samples, [stage](const TrainerSample& sample) { return sample.seconds[stage]; });
    }
  }
  return data::json_text(json);
}

std::string to_line(const PsMetrics& metrics, double time) {
  OrderedJson json = {{"kind", "metrics"}, {"time", time}};
  put(json, metrics);
  if (metrics.applied > 0) {
    json["staleness"] =
        static_cast<double>(metrics.staleness_sum) / static_cast<double>(metrics.applied);
  }
  if (!metrics.replica_role.empty()) {
    json["standing"] = metrics.replica_role;
    json["has_backup"] = metrics.has_backup;
    json["view"] = metrics.view;
    json["lag_updates"] = metrics.lag_updates;
  }
  if (!metrics.samples.empty()) {
    json["stages"] = {
        {"apply", mean(metrics.samples, [](const RangeSample& sample) { return sample.apply; })}};
  }
  return data::json_text(json);
}

}  // namespace disttf::roles
