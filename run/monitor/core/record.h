// Records: each is one observation of a run, as one JSON object on a line. The code that observes
// something writes a record; all displays of a run are made of records
// (run/monitor/core/run_view.h). docs/records.md has every kind with its fields.
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
#include "run/monitor/core/critical_path.h"
#include "run/run_config.h"

namespace disttf::roles {

// The length of a line without its end: a write to a pipe is atomic up to PIPE_BUF, 4096.
inline constexpr std::size_t kMaxRecordBytes = 4000;
// A run's settings are nested objects; its model's layers are one level deeper.
inline constexpr std::size_t kMostRecordDepth = 6;

// Each to_line() returns a line without its end. `time`: of the observation.

// A chief begins to lead, or resumes, at `step`.
struct RunRecord {
  const RunConfig* config = nullptr;
  std::size_t ps = 0;
  std::uint64_t step = 0;
  std::span<const std::string_view> classes = {};  // omitted beyond 64
  std::string model;                               // "mlp"
  std::size_t parameters = 0;
  [[nodiscard]] std::string to_line(double time) const;
};

struct StepRecord {
  std::uint64_t step = 0;
  double loss = 0;  // of the chief's batch
  double learning_rate = 0;
  std::uint64_t images = 0;  // trained on by all trainers since the start of the run
  double images_per_second = 0;
  std::span<const math::ToldNumber> numbers = {};  // as many as there is room for
  [[nodiscard]] std::string to_line(double time) const;
};

struct EvaluationRecord {
  std::uint64_t step = 0;
  bool is_last = false;
  const math::Evaluation* validation = nullptr;
  const math::Evaluation* test = nullptr;  // of a user's program there is none
  std::string task = {};                   // "evaluator:0"; empty: the chief
  [[nodiscard]] std::string to_line(double time) const;
};
// The rows of the confusion matrix of a test set, a line per class.
[[nodiscard]] std::vector<std::string> confusion_lines(const math::Evaluation& test,
                                                       std::uint64_t step, double time);

// Written by programs that start tasks.
struct TaskRecord {
  std::string task;     // "worker:1"
  std::string address;  // "10.0.0.7:2222"
  std::string state;    // "running"
  std::int64_t pid = -1;
  std::uint64_t restarts = 0;
  double since = 0;  // start of the state
  [[nodiscard]] std::string to_line(double time) const;
};

struct CheckpointRecord {
  std::uint64_t step = 0;
  std::string name;            // of its folder
  std::uint64_t bytes = 0;     // 0: unknown
  double seconds = 0;          // time to write it
  std::string weights_sha256;  // empty: unknown
  [[nodiscard]] std::string to_line(double time) const;
};

// The history of a run: an event of a task, or of the run.
struct EventRecord {
  enum class Level : std::uint8_t { kInfo, kWarning, kError };
  Level level = Level::kInfo;
  std::string task;  // empty: the run
  std::string what;  // one word: "lost"
  std::string text;  // one plain sentence
  [[nodiscard]] std::string to_line(double time) const;
};

// The state of the run: "training", "updating", "finished", "ending", "ended".
struct StateRecord {
  std::string state;
  [[nodiscard]] std::string to_line(double time) const;
};

struct PictureRecord {
  std::uint64_t step = 0;
  std::string set;  // "wrong", "filters"
  std::size_t index = 0;
  std::string label;   // the true class
  std::string answer;  // the predicted class
  std::span<const std::byte> png = {};
  [[nodiscard]] std::string to_line(double time) const;
};

// The result of a request for a timeline.
struct TraceRecord {
  std::string file;     // absolute; empty: there is none, because of
  std::string why_not;  // a sentence
  std::uint64_t from = 0;
  std::uint64_t steps = 0;
  std::vector<std::string> missing = {};  // tasks that have not sent all their steps
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

// The critical path of steps; `cluster` maps ranks to tasks.
[[nodiscard]] std::string critical_path_line(const CriticalPath& critical_path,
                                             const net::Cluster& cluster, double time);
// "worker:3 is 41 % slower: backward"; for a single ps, "ps:0 is 41 % slower than at its fastest:
// apply".
[[nodiscard]] std::string slowest_text(const CriticalPath::Slowest& slowest,
                                       const net::Cluster& cluster);

// Whether `line` can be a record, by its length and depth.
[[nodiscard]] bool may_be_record(std::string_view line) noexcept;

}  // namespace disttf::roles
