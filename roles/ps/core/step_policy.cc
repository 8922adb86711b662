#include "roles/ps/core/step_policy.h"

namespace disttf::roles {

std::unique_ptr<StepPolicy> make_step_policy(const RunConfig& config, std::size_t floats) {
  if (!config.sync_replicas) {
    return make_asynchronous(config, floats);
  }
  if (config.elastic()) {
    return make_elastic(config, floats);
  }
  if (config.every_gradient_counts()) {
    return make_every_gradient(config, floats);
  }
  return make_backup_workers(config, floats);
}

std::optional<std::string> refusal_if_ahead(const PushId& push, const StepState& now) {
  if (push.step <= now.step || now.is_finished) {
    return std::nullopt;
  }
  return "a gradient for step " + std::to_string(push.step) +
         " came while the parameters are at step " + std::to_string(now.step);
}

}  // namespace disttf::roles
