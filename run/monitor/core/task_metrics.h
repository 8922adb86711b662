// The report that a task sends once a second over connections that a run has anyway: a trainer to
// its first ps, each ps to the chief, which makes records of them (run/monitor/core/record.h).
// JSON of at most kMaxMetricsBytes; measured steps are in whole microseconds.
//
// Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"
#include "net/wire/metrics_messages.h"
#include "run/monitor/core/step_sampling.h"

namespace disttf::roles {

// Facts about any process.
struct ProcessFacts {
  std::string host;
  std::int64_t pid = 0;
  std::uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
  // In frames, since its start, without what peers read from shared memory.
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  // Identifies its steady clock: processes with the same name share a clock.
  std::string clock = {};
};

struct TrainerMetrics {
  net::TaskId task;
  ProcessFacts process;
  std::string isa;
  std::size_t threads = 1;
  std::uint64_t step = 0;  // of its parameters
  std::uint64_t pushes = 0;
  std::uint64_t dropped = 0;  // of those, gradients that came too late
  std::vector<TrainerSample> samples;
  std::vector<TrainerSample> traced = {};  // the next samples of a timeline
  bool has_more_traced = false;            // more of them follow
  // Of a user's program: what the bits of its gradients depend on. A long one is not sent.
  std::map<std::string, std::string> fingerprint = {};
  // How many programs this process has had, one after the other: each but the last one was killed.
  std::uint64_t programs = 0;
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
  std::string replica_role;       // "primary", "backup"; empty: the only host of its range
  bool has_backup = false;        // primary: the backup has everything that is acknowledged
  std::uint64_t view = 0;         // replicas: the view's number
  std::uint64_t lag_updates = 0;  // primary: updates that the backup has not acknowledged
  std::vector<bool> present;      // by rank: the trainer has a step channel here
  std::vector<RangeSample> samples;
  std::vector<RangeSample> traced = {};
  bool has_more_traced = false;
};

// The most samples of a timeline that fit into a report; for a ps by the number of trainers.
inline constexpr std::size_t kMostTracedAtOnce = 64;
[[nodiscard]] std::size_t most_traced_at_once(std::size_t trainers) noexcept;

// Omit the oldest samples if the text would be too long.
[[nodiscard]] std::string to_json(const TrainerMetrics& metrics);
[[nodiscard]] std::string to_json(const PsMetrics& metrics);

// Parse a peer's report. nullopt: malformed, of a wrong type, or nested too deeply.
[[nodiscard]] std::optional<TrainerMetrics> trainer_metrics_from_json(std::string_view text);
[[nodiscard]] std::optional<PsMetrics> ps_metrics_from_json(std::string_view text);

// The records of kind "metrics" for these reports.
// `is_program`: its gradients are those of a user's program, which has no stage "forward".
[[nodiscard]] std::string to_line(const TrainerMetrics& metrics, double time,
                                  bool is_program = false);
[[nodiscard]] std::string to_line(const PsMetrics& metrics, double time);

}  // namespace disttf::roles
