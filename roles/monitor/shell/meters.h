// What the roles measure, as each of them hands it over: a task that exports no metrics has none of
// these (Task::meters is null), and then pays a comparison with null.
//
// Each belongs to the thread that is named; whoever scrapes reads at any time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "math/evaluation.h"
#include "roles/monitor/shell/metrics.h"
#include "roles/run/task.h"

namespace disttf::roles {

// How bytes travel: what a tensor is written as, or in memory, which is not sent at all; headers,
// configurations and the like are control.
enum class Codec : std::uint8_t { kF32, kBf16, kInt8, kInt4, kSparse, kMemory, kControl };
inline constexpr std::size_t kCodecs = 7;
// Of the flags of a frame that carries a tensor.
[[nodiscard]] Codec codec_of(std::uint16_t flags) noexcept;

// Of the thread that talks: a trainer's computing thread, a ps's only one.
class ByteMeters {
 public:
  explicit ByteMeters(MetricRegistry& metrics);
  void sent(Codec codec, std::size_t bytes) noexcept { of(sent_, codec).add(bytes); }
  void received(Codec codec, std::size_t bytes) noexcept { of(received_, codec).add(bytes); }
  // A frame: its header, and `bytes` of its body.
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

// The computing thread's.
struct TrainerMeters {
  explicit TrainerMeters(MetricRegistry& metrics);
  // Of an evaluation on one of the two sets.
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

// An evaluator's.
struct EvaluatorMeters {
  explicit EvaluatorMeters(MetricRegistry& metrics);

  Gauge& step;
  Gauge& train_steps;
  TrainerMeters::Evaluated validation;
  TrainerMeters::Evaluated test;
};

// Of one range, on the ps's thread.
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

// The chief's other thread's.
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

// Of this process: what its role measures is made when that asks for it.
class Meters {
 public:
  // `task`: "worker:1". `isa`: what it would compute with.
  Meters(std::string task, std::string_view version, std::string_view isa);

  [[nodiscard]] const std::string& task() const noexcept { return task_; }
  [[nodiscard]] MetricRegistry& metrics() noexcept { return metrics_; }
  // When they were made, which is when the process begins; seconds since the epoch.
  [[nodiscard]] double started() const noexcept { return started_; }
  // Once each, before the thread that they belong to begins.
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

// Null where nobody measures.
[[nodiscard]] TrainerMeters* trainer_meters(const Task& task);

}  // namespace disttf::roles
