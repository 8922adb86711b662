// The metrics of each role. A task that exports no metrics has none of these (Task::meters is
// null), and then only compares with null.
//
// Each object belongs to the named thread; scrapes read at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "math/evaluation.h"
#include "run/monitor/shell/metric_registry.h"
#include "run/task.h"

namespace disttf::roles {

// The encoding of transferred bytes: that of a tensor, or shared memory, which is not sent;
// headers, configurations and the like are control.
enum class Codec : std::uint8_t { kF32, kBf16, kInt8, kInt4, kSparse, kMemory, kControl };
inline constexpr std::size_t kCodecs = 7;
// From the flags of a frame with a tensor.
[[nodiscard]] Codec codec_of(std::uint16_t flags) noexcept;

// Used by the thread that communicates: a trainer's computing thread, a ps's only one.
class ByteMeters {
 public:
  explicit ByteMeters(MetricRegistry& metrics);
  void sent(Codec codec, std::size_t bytes) noexcept { of(sent_, codec).add(bytes); }
  void received(Codec codec, std::size_t bytes) noexcept { of(received_, codec).add(bytes); }
  // Counts a frame: its header, and `bytes` of its body.
  void sent_frame(Codec codec, std::size_t bytes) noexcept;
  void received_header() noexcept;

 private:
  using Counters = std::array<Counter*, kCodecs>;
  static Counter& of(Counters& counters, Codec codec) noexcept {
    return *counters[static_cast<std::size_t>(codec)];
  }
  static Counters make(MetricRegistry& metrics, const char* direction);
  Counters sent_;
  Counters received_;
};

// Used by the computing thread.
struct TrainerMeters {
  explicit TrainerMeters(MetricRegistry& metrics);
  // Of an evaluation of one of the two sets.
  struct Evaluated {
    Evaluated(MetricRegistry& metrics, const char* set);
    void tell(const math::Evaluation& found) const;
    Gauge& loss;
    Gauge& accuracy;
  };

  Gauge& step;
  Gauge& train_steps;
  Gauge& loss;
  Gauge& learning_rate;
  Counter& examples;
  Counter& local_steps;
  Histogram& gradient;
  Histogram& push_pull;
  Counter& dropped;
  Counter& reconnects;
  Gauge& generation;
  Gauge& diverged;
  Evaluated validation;
  Evaluated test;
  ByteMeters bytes;
};

// Used by an evaluator.
struct EvaluatorMeters {
  explicit EvaluatorMeters(MetricRegistry& metrics);

  Gauge& step;
  Gauge& train_steps;
  TrainerMeters::Evaluated validation;
  TrainerMeters::Evaluated test;
};

// Of one range; used by the ps's thread.
struct PsRangeMeters {
  PsRangeMeters(MetricRegistry& metrics, std::size_t range);

  Gauge& step;
  Gauge& finished;
  Gauge& generation;
  Gauge& trainers;
  Gauge& missing;
  Counter& used;
  Counter& dropped;
  Counter& repeated;
  Counter& bad;
  Histogram& apply;
  Histogram& wait_for_last;
  Histogram& staleness;
  Gauge& primary;
  Gauge& replicas;
  Gauge& lag;
  Gauge& view;
  Counter& view_changes;

 private:
  template <typename Of>
  explicit PsRangeMeters(const Of& of);
};

// Used by the chief's second thread.
struct CheckpointMeters {
  explicit CheckpointMeters(MetricRegistry& metrics);
  void saved(std::size_t bytes, std::chrono::nanoseconds time) const;
  void failed() const { failures.add(); }

  Counter& saves;
  Counter& failures;
  Gauge& last_success;
  Gauge& bytes;
  Histogram& seconds;
};

// The metrics of this process. Those of a role are created on request.
class Meters {
 public:
  // `task`: "worker:1". `isa`: its instruction set.
  Meters(std::string task, std::string_view version, std::string_view isa);

  [[nodiscard]] const std::string& task() const noexcept { return task_; }
  [[nodiscard]] MetricRegistry& metrics() noexcept { return metrics_; }
  // The creation time, which is the start of the process; seconds since the epoch.
  [[nodiscard]] double started() const noexcept { return started_; }
  // Each is called once, before its thread starts.
  [[nodiscard]] TrainerMeters& trainer();
  [[nodiscard]] EvaluatorMeters& evaluator();
  [[nodiscard]] ByteMeters& ps_bytes();
  [[nodiscard]] CheckpointMeters& checkpoints();

 private:
  const std::string task_;
  const double started_;
  MetricRegistry metrics_;
  std::unique_ptr<TrainerMeters> trainer_;
  std::unique_ptr<EvaluatorMeters> evaluator_;
  std::unique_ptr<ByteMeters> ps_bytes_;
  std::unique_ptr<CheckpointMeters> checkpoints_;
};

// Null if the task exports no metrics.
[[nodiscard]] TrainerMeters* trainer_meters(const Task& task);

}  // namespace disttf::roles
