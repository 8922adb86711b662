// Metrics of a trainer's steps, if they are exported (Task::meters); otherwise each call is a
// comparison with null.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "math/evaluation.h"
#include "net/wire/frame.h"
#include "roles/trainer/core/step_exchange.h"
#include "run/monitor/shell/meters.h"
#include "run/run_config.h"
#include "run/task.h"

namespace disttf::roles {

class StepMeter {
 public:
  explicit StepMeter(const Task& task)
      : meters_(trainer_meters(task)),
        registry_(task.meters == nullptr ? nullptr : &task.meters->metrics()) {}

  // For a Timed; null if metrics are off.
  [[nodiscard]] Histogram* gradient() const noexcept {
    return meters_ == nullptr ? nullptr : &meters_->gradient;
  }
  [[nodiscard]] Histogram* push_pull() const noexcept {
    return meters_ == nullptr ? nullptr : &meters_->push_pull;
  }

  // The run's configuration is known.
  void prepared(const RunConfig& config) const noexcept {
    if (meters_ != nullptr) {
      meters_->train_steps.set(static_cast<double>(config.train_steps));
    }
  }
  // A gradient of this many examples.
  void computed(std::size_t examples, float loss, std::span<const math::ToldNumber> numbers) {
    if (meters_ != nullptr) {
      meters_->examples.add(examples);
      meters_->loss.set(static_cast<double>(loss));
      tell(Metric::kProgramNumber, numbers);
    }
  }
  void diverged() const noexcept {
    if (meters_ != nullptr) {
      meters_->diverged.set(1);
    }
  }
  // A step was made, or the run goes on from another state.
  void stepped(const StepResult& reply, const RunConfig& config) noexcept {
    if (meters_ != nullptr) {
      count_step(reply, config);
    }
  }
  void joined(net::Generation generation) const noexcept {
    if (meters_ != nullptr) {
      meters_->generation.set(static_cast<double>(net::number_of(generation)));
    }
  }
  void evaluated(const math::Evaluation& validation, const math::Evaluation& test) {
    if (meters_ != nullptr) {
      meters_->validation.tell(validation);
      if (!test.is_told) {  // a program evaluates once
        meters_->test.tell(test);
      }
      tell(Metric::kProgramEvaluation, validation.told);
    }
  }

 private:
  // Sets a gauge for each number; allocates for the first 64 names that a program uses, and ignores
  // all others.
  void tell(Metric metric, std::span<const math::ToldNumber> numbers);
  void count_step(const StepResult& reply, const RunConfig& config) noexcept;

  TrainerMeters* meters_;
  MetricRegistry* registry_;  // null as meters_
  std::map<std::pair<Metric, std::string>, Gauge*> numbers_;
  // When the learning rate is computed next: it is scraped every few seconds, which does not
  // justify a cosine in each step.
  std::chrono::steady_clock::time_point rate_at_{};
};

}  // namespace disttf::roles
