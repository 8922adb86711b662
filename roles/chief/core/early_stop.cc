#include "roles/chief/core/early_stop.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

namespace disttf::roles {

// A process that has just started, and finds the run at a multiple, evaluates it again: the same
// evaluation gives the same decision.
bool EarlyStop::is_due(std::uint64_t step) {
  if (rule_.eval_every == 0) {
    return false;
  }
  if (!next_) {
    const bool is_multiple = step != 0 && step % rule_.eval_every == 0;
    // Without a rule to judge by, an evaluation only reports, so it is not repeated at the start.
    next_ = judges() && is_multiple ? step : (step / rule_.eval_every + 1) * rule_.eval_every;
  }
  // The last step is evaluated as the result.
  return step >= *next_ && step < rule_.train_steps;
}

void EarlyStop::evaluated(std::uint64_t step, const math::Evaluation& validation) {
  // One evaluation for each multiple, even if steps were skipped.
  next_ = (step / rule_.eval_every + 1) * rule_.eval_every;
  // A best evaluation that is newer than this step was the best of all up to its own step. If the
  // run was rolled back, this step is included already.
  const double loss = validation.loss;
  if (std::isfinite(loss) && step > best_.step && (best_.step == 0 || loss < best_.loss)) {
    best_ = {.step = step, .loss = loss};
  }
  // Rounded as the user writes the target.
  const auto accuracy = static_cast<float>(validation.accuracy());
  if (rule_.target_accuracy != 0 && accuracy >= rule_.target_accuracy) {
    stop(step, fmt::format("the validation accuracy {:.4f} reached --target_accuracy {}", accuracy,
                           rule_.target_accuracy));
  } else if (rule_.patience != 0 && step > best_.step &&
             step / rule_.eval_every - best_.step / rule_.eval_every >= rule_.patience) {
    // Patience is counted in multiples of eval_every, whether or not each was evaluated here.
    const std::string best =
        best_.step == 0 ? std::string("been a number")
                        : fmt::format("fallen below the {:.6g} of step {}", best_.loss, best_.step);
    stop(step, fmt::format("the validation loss has not {} in {} evaluation(s), as "
                           "--patience says",
                           best, rule_.patience));
  }
}

EarlyStopState EarlyStop::saved_with(const BestEvaluation& told,
                                     std::optional<std::uint64_t> result) noexcept {
  // The ps may have recorded a newer evaluation, of this chief's predecessor.
  learn(told);
  // Reaching train_steps is no early stop.
  const bool has_ended = judges() && result && *result < rule_.train_steps;
  return {.best = best_, .step = has_ended ? *result : 0};
}

void EarlyStop::stop(std::uint64_t step, std::string why) {
  // stops_at() compares with this step: after a rollback to before it, training goes on.
  stop_ = step;
  why_ = fmt::format("Stopped at step {}: {}", step, std::move(why));
}

}  // namespace disttf::roles
