// What a task tells of itself, once a second, over the connections that a run has anyway: a trainer
// its first ps, each ps the chief, who makes records of it (roles/monitor/core/record.h). JSON, at
// most kMaxMetricsBytes of it; measured steps are in whole microseconds.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"
#include "net/wire/metrics_messages.h"
#include "roles/monitor/core/step_sampling.h"

namespace disttf::roles {

// Of any process.
struct ProcessFacts {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
  // In frames, since it began: not what others read where it lies.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  // What its steady clock is counted from: processes of which this is the same have one clock.
  std::string clock = {};
};

struct TrainerMetrics {
  net::TaskId task;
  ProcessFacts process;
  std::string isa;
  std::size_t threads = 1;
  std::uint64_t step = 0;  // of the parameters that it has
  std::uint64_t pushes = 0;
  std::uint64_t dropped = 0;  // of those: came late and were not used
  std::vector<TrainerSample> samples;
  std::vector<TrainerSample> traced = {};  // the next ones of the steps that all are to tell of
  bool has_more_traced = false;            // and there are others
};

struct PsMetrics {
  net::TaskId task;
  ProcessFacts process;
  std::uint64_t step = 0;
  std::uint64_t generation = 0;   // the number in it
  std::uint64_t range_begin = 0;  // floats
  std::uint64_t range_end = 0;
  std::uint64_t pushes = 0;
  std::uint64_t applied = 0;
  std::uint64_t repeats = 0;
  std::uint64_t dropped = 0;
  std::uint64_t staleness_sum = 0;
  std::string standing;           // "primary", "backup"; empty: the only host of its range
  bool has_backup = false;        // primary: the other host has all that is acknowledged
  std::uint64_t view = 0;         // replicas: its number
  std::uint64_t lag_updates = 0;  // primary: updates that the other host has not acknowledged yet
  std::vector<bool> present;      // by rank: the trainer has a step channel here
  std::vector<RangeSample> samples;
  std::vector<RangeSample> traced = {};
  bool has_more_traced = false;
};

// Of traced steps: so many are told at once, that they fit. Of a ps's: by the number of trainers.
inline constexpr std::size_t kMostTracedAtOnce = 64;
[[nodiscard]] std::size_t most_traced_at_once(std::size_t trainers) noexcept;

// The oldest samples are left out where the text would be longer than allowed.
[[nodiscard]] std::string to_json(const TrainerMetrics& metrics);
[[nodiscard]] std::string to_json(const PsMetrics& metrics);

// What a peer has sent. nullopt: not that, of a wrong type, or deeper than it should be.
[[nodiscard]] std::optional<TrainerMetrics> trainer_metrics_from_json(std::string_view text);
[[nodiscard]] std::optional<PsMetrics> ps_metrics_from_json(std::string_view text);

// The records of kind "metrics" that are made of them.
[[nodiscard]] std::string to_line(const TrainerMetrics& metrics, double time);
[[nodiscard]] std::string to_line(const PsMetrics& metrics, double time);

}  // namespace disttf::roles
