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

}  // namespace disttf::roles
