#include "roles/trainer/shell/step_meter.h"

#include "math/rate_schedule.h"

namespace disttf::roles {

void StepMeter::count_step(const StepResult& reply, const RunConfig& config) noexcept {
  // At most ten times a second, since a small step takes microseconds.
  constexpr std::chrono::milliseconds kRateInterval{100};
  meters_->step.set(static_cast<double>(reply.step));
  meters_->local_steps.add();
  if (reply.dropped != 0) {
    meters_->dropped.add();
  }
  const auto now = std::chrono::steady_clock::now();
  const bool is_last = reply.step >= config.train_steps;
  // After the last step the schedule has no next rate.
  if (!is_last && now >= rate_at_) {
    rate_at_ = now + kRateInterval;
    meters_->learning_rate.set(static_cast<double>(
        config.optimizer.learning_rate * math::rate_factor(config.rate_schedule(), reply.step)));
  }
}

void StepMeter::tell(Metric metric, std::span<const math::ToldNumber> numbers) {
  constexpr std::size_t kMostNames = 64;
  for (const auto& [name, value] : numbers) {
    auto found = numbers_.find({metric, name});
    if (found == numbers_.end() && numbers_.size() < kMostNames) {
      Gauge& gauge = registry_->gauge(metric, {{.name = "name", .value = name}});
      found = numbers_.emplace(std::pair(metric, name), &gauge).first;
    }
    if (found != numbers_.end()) {
      found->second->set(value);
    }
  }
}

}  // namespace disttf::roles
