#include "run/monitor/shell/meters.h"

#include <cmath>
#include <utility>

#include "net/wire/frame.h"
#include "run/monitor/shell/process_facts.h"

namespace disttf::roles {
namespace {

constexpr std::array<const char*, kCodecs> kCodecNames = {"f32",    "bf16",   "int8",   "int4",
                                                          "sparse", "memory", "control"};

// A gauge without a value is not exported; these start with a known 0.
Gauge& zero(Gauge& gauge) {
  gauge.set(0);
  return gauge;
}

// Creates metrics of one range of the parameters.
struct OfRange {
  MetricRegistry& metrics;
  std::string range;
  [[nodiscard]] std::vector<MetricLabel> labels() const {
    return {{.name = "range", .value = range}};
  }
  [[nodiscard]] Gauge& gauge(Metric metric) const { return metrics.gauge(metric, labels()); }
  [[nodiscard]] Histogram& histogram(Metric metric) const {
    return metrics.histogram(metric, labels());
  }
  [[nodiscard]] Counter& pushes(const char* result) const {
    return metrics.counter(Metric::kPsPushes, {{.name = "range", .value = range},
                                               {.name = "result", .value = result}});
  }
};

// Makes a group at its first use, so that a task exports only metrics that it has.
template <typename Group>
Group& made_once(std::unique_ptr<Group>& group, MetricRegistry& metrics) {
  if (!group) {
    group = std::make_unique<Group>(metrics);
  }
  return *group;
}

}  // namespace

Codec codec_of(std::uint16_t flags) noexcept {
  // Sparse first: such a gradient may also have the flag of its numbers' format.
  if ((flags & net::kFlagSparse) != 0) {
    return Codec::kSparse;
  }
  if ((flags & net::kFlagBf16) != 0) {
    return Codec::kBf16;
  }
  if ((flags & net::kFlagInt8) != 0) {
    return Codec::kInt8;
  }
  return (flags & net::kFlagInt4) != 0 ? Codec::kInt4 : Codec::kF32;
}

ByteMeters::ByteMeters(MetricRegistry& metrics)
    : sent_(make(metrics, "sent")), received_(make(metrics, "received")) {}

ByteMeters::Counters ByteMeters::make(MetricRegistry& metrics, const char* direction) {
  Counters counters{};
  for (std::size_t each = 0; each < kCodecs; ++each) {
    counters[each] = &metrics.counter(
        Metric::kBytes,
        {{.name = "direction", .value = direction}, {.name = "codec", .value = kCodecNames[each]}});
  }
  return counters;
}

void ByteMeters::sent_frame(Codec codec, std::size_t bytes) noexcept {
  // A header carries no tensor, so its bytes count as control.
  sent(Codec::kControl, net::kHeaderBytes);
  sent(codec, bytes);
}

void ByteMeters::received_header() noexcept { received(Codec::kControl, net::kHeaderBytes); }

TrainerMeters::TrainerMeters(MetricRegistry& all)
    : step(all.gauge(Metric::kStep)),
      train_steps(all.gauge(Metric::kTrainSteps)),
      loss(all.gauge(Metric::kLoss)),
      learning_rate(all.gauge(Metric::kLearningRate)),
      examples(all.counter(Metric::kExamples)),
      local_steps(all.counter(Metric::kLocalSteps)),
      gradient(all.histogram(Metric::kGradientSeconds)),
      push_pull(all.histogram(Metric::kPushPullSeconds)),
      dropped(all.counter(Metric::kDroppedGradients)),
      reconnects(all.counter(Metric::kReconnects)),
      generation(all.gauge(Metric::kGeneration)),
      diverged(zero(all.gauge(Metric::kDiverged))),
      validation(all, "validation"),
      test(all, "test"),
      bytes(all) {}

TrainerMeters::Evaluated::Evaluated(MetricRegistry& metrics, const char* set)
    : loss(metrics.gauge(Metric::kEvaluationLoss, {{.name = "set", .value = set}})),
      accuracy(metrics.gauge(Metric::kEvaluationAccuracy, {{.name = "set", .value = set}})) {}

void TrainerMeters::Evaluated::tell(const math::Evaluation& found) const {
  if (!found.is_told || !std::isnan(found.loss)) {  // a program need not give a loss
    loss.set(found.loss);
  }
  // Only classification has an accuracy; without it the gauge is not exported.
  if (found.has_accuracy()) {
    accuracy.set(found.accuracy());
  }
}

EvaluatorMeters::EvaluatorMeters(MetricRegistry& all)
    : step(all.gauge(Metric::kStep)),
      train_steps(all.gauge(Metric::kTrainSteps)),
      validation(all, "validation"),
      test(all, "test") {}

PsRangeMeters::PsRangeMeters(MetricRegistry& metrics, std::size_t range)
    : PsRangeMeters(OfRange{.metrics = metrics, .range = std::to_string(range)}) {}

template <typename Of>
PsRangeMeters::PsRangeMeters(const Of& of)
    : step(of.gauge(Metric::kPsStep)),
      finished(zero(of.gauge(Metric::kPsFinished))),
      generation(of.gauge(Metric::kPsGeneration)),
      trainers(zero(of.gauge(Metric::kPsTrainers))),
      missing(of.gauge(Metric::kPsMissingGradients)),
      used(of.pushes("used")),
      dropped(of.pushes("dropped")),
      repeated(of.pushes("repeated")),
      bad(of.metrics.counter(Metric::kPsRejectedGradients, of.labels())),
      apply(of.histogram(Metric::kPsApplySeconds)),
      wait_for_last(of.histogram(Metric::kPsWaitForLastSeconds)),
      staleness(of.histogram(Metric::kPsStaleness)),
      primary(of.gauge(Metric::kPsPrimary)),
      replicas(of.gauge(Metric::kPsReplicas)),
      lag(of.gauge(Metric::kPsReplicaLag)),
      view(of.gauge(Metric::kPsView)),
      view_changes(of.metrics.counter(Metric::kPsViewChanges, of.labels())) {}

CheckpointMeters::CheckpointMeters(MetricRegistry& metrics)
    : saves(metrics.counter(Metric::kCheckpointSaves, {{.name = "result", .value = "saved"}})),
      failures(metrics.counter(Metric::kCheckpointSaves, {{.name = "result", .value = "failed"}})),
      last_success(metrics.gauge(Metric::kCheckpointLastSuccess)),
      bytes(metrics.gauge(Metric::kCheckpointBytes)),
      seconds(metrics.histogram(Metric::kCheckpointSeconds)) {}

void CheckpointMeters::saved(std::size_t size, std::chrono::nanoseconds time) const {
  saves.add();
  last_success.set(record_time());
  bytes.set(static_cast<double>(size));
  seconds.observe(time);
}

Meters::Meters(std::string task, std::string_view version, std::string_view isa)
    : task_(std::move(task)), started_(record_time()) {
  metrics_.info(Metric::kBuildInfo, {{.name = "version", .value = std::string(version)},
                                     {.name = "isa", .value = std::string(isa)}});
}

TrainerMeters& Meters::trainer() { return made_once(trainer_, metrics_); }
EvaluatorMeters& Meters::evaluator() { return made_once(evaluator_, metrics_); }
ByteMeters& Meters::ps_bytes() { return made_once(ps_bytes_, metrics_); }
CheckpointMeters& Meters::checkpoints() { return made_once(checkpoints_, metrics_); }

TrainerMeters* trainer_meters(const Task& task) {
  return task.meters == nullptr ? nullptr : &task.meters->trainer();
}

}  // namespace disttf::roles
