// A record: one thing that was observed of a run, as one JSON object on a line of its own. Who
// observes something writes a record; whatever is shown of a run is made of records
// (roles/monitor/core/run_view.h). docs/records.md has every kind with its fields.
//
// Times are seconds since the epoch, durations seconds, sizes bytes. A number that is not finite is
// null. Values and pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "math/evaluation.h"
#include "net/wire/cluster.h"
#include "roles/monitor/core/stage_frontier.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

// Of a line without its end: a pipe takes it whole, or not at all (PIPE_BUF is 4096).
inline constexpr std::size_t kMaxRecordBytes = 4000;

// Each to_line() is without the line's end. `time`: when it was observed.

// A chief begins to lead, or to lead again, at `step`.
struct RunRecord {
  const RunConfig* config = nullptr;
  std::size_t ps = 0;
  std::uint64_t step = 0;
  std::span<const std::string_view> classes = {};  // left out beyond 64
  std::string model;                               // "mlp"
  std::size_t parameters = 0;
  [[nodiscard]] std::string to_line(double time) const;
};

struct StepRecord {
  std::uint64_t step = 0;
  double loss = 0;  // of the chief's batch
  double learning_rate = 0;
  std::uint64_t images = 0;  // trained on by all trainers since the run began
  double images_per_second = 0;
  [[nodiscard]] std::string to_line(double time) const;
};

struct EvaluationRecord {
  std::uint64_t step = 0;
  bool is_last = false;
  const math::Evaluation* validation = nullptr;
  const math::Evaluation* test = nullptr;
  std::string task = {};  // "evaluator:0"; empty: the chief
  [[nodiscard]] std::string to_line(double time) const;
};
// One line of the confusion matrix of a test set for each class.
[[nodiscard]] std::vector<std::string> confusion_lines(const math::Evaluation& test,
                                                       std::uint64_t step, double time);

// From whoever starts tasks.
struct TaskRecord {
  std::string task;     // "worker:1"
  std::string address;  // "10.0.0.7:2222"
  std::string state;    // "running"
  std::int64_t pid = -1;
  std::uint64_t restarts = 0;
  double since = 0;  // of the state
  [[nodiscard]] std::string to_line(double time) const;
};

struct CheckpointRecord {
  std::uint64_t step = 0;
  std::string name;            // of its folder
  std::uint64_t bytes = 0;     // 0: not known
  double seconds = 0;          // that it took
  std::string weights_sha256;  // empty: not known
  [[nodiscard]] std::string to_line(double time) const;
};

// The story of a run: something happened to a task, or to all.
struct EventRecord {
  enum class Level : std::uint8_t { kInfo, kWarning, kError };
  Level level = Level::kInfo;
  std::string task;  // empty: the run
  std::string what;  // one word: "lost"
  std::string text;  // one plain sentence
  [[nodiscard]] std::string to_line(double time) const;
};

// What the whole is doing: "training", "updating", "finished", "ending", "ended".
struct StateRecord {
  std::string state;
  [[nodiscard]] std::string to_line(double time) const;
};

struct PictureRecord {
  std::uint64_t step = 0;
  std::string set;  // "wrong", "filters"
  std::size_t index = 0;
  std::string label;   // what it is
  std::string answer;  // what the model takes it for
  std::span<const std::byte> png = {};
  [[nodiscard]] std::string to_line(double time) const;
};

// A timeline that somebody has asked for.
struct TraceRecord {
  std::string file;     // absolute; empty: there is none, and
  std::string why_not;  // a sentence
  std::uint64_t from = 0;
  std::uint64_t steps = 0;
  std::vector<std::string> missing = {};  // tasks that have not told all of theirs
  std::optional<double> clock_error_seconds = {};
  [[nodiscard]] std::string to_line(double time) const;
};

struct ResultRecord {
  std::uint64_t step = 0;
  std::string line;  // "MNIST accuracy: 0.9771"
  std::optional<double> accuracy;
  std::string weights_sha256;
  [[nodiscard]] std::string to_line(double time) const;
};

inline constexpr const char* kThanItsFastest = " than at its fastest";

// Who holds steps up: which rank is which task, `cluster` says.
[[nodiscard]] std::string frontier_line(const Frontier& frontier, const net::Cluster& cluster,
                                        double time);
// "worker:3 is 41 % slower: backward"; of the only ps, "ps:0 is 41 % slower than at its fastest:
// apply"
[[nodiscard]] std::string slowest_text(const Frontier::Slowest& slowest,
                                       const net::Cluster& cluster);

// Whether `line` can be a record: its length, and how deep it is nested.
[[nodiscard]] bool may_be_record(std::string_view line) noexcept;

}  // namespace disttf::roles
