// Early stopping: when a run ends before its last step because of intermediate evaluations on the
// validation set: --target_accuracy and --patience.
//
// A function of the evaluations alone. So if every gradient counts, any chief stops at the same
// step, however often the run is rolled back. The parameters of that step are the result: no step
// is made between them and the chief's decision (roles/ps/core/shard.h, conclude()).
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "math/evaluation.h"
#include "run/training_state.h"

namespace disttf::roles {

class EarlyStop {
 public:
  // See RunConfig.
  struct Rule {
    std::uint64_t train_steps = 0;
    std::uint64_t eval_every = 0;
    float target_accuracy = 0;
    std::uint64_t patience = 0;
  };
  explicit EarlyStop(const Rule& rule) : rule_(rule) {}

  // Returns whether the parameters of that step are to be evaluated before another step is made
  // from them. In modes that skip steps: at the first step seen after a multiple.
  [[nodiscard]] bool is_due(std::uint64_t step);
  // They were evaluated.
  void evaluated(std::uint64_t step, const math::Evaluation& validation);
  // Returns whether the run ends with them.
  [[nodiscard]] bool stops_at(std::uint64_t step) const noexcept {
    return !why_.empty() && step == stop_;
  }
  // Returns the sentence. REQUIRES: stops_at() is true for some step.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // --patience: the best evaluation must survive this chief.
  [[nodiscard]] bool keeps_best() const noexcept { return rule_.patience != 0; }
  [[nodiscard]] const BestEvaluation& best() const noexcept { return best_; }
  // Adds the best evaluation of an earlier process or a checkpoint.
  void learn(const BestEvaluation& other) noexcept { best_.learn(other); }

  // Returns what a checkpoint is to contain. `told`: the best evaluation that the ps have reported;
  // it may have arrived when no evaluation followed: before a signal, or at the very end. `result`:
  // the step of the parameters, if they are the run's result.
  [[nodiscard]] EarlyStopState saved_with(const BestEvaluation& told,
                                          std::optional<std::uint64_t> result) noexcept;
  // Returns whether the state of the ps may be saved. Not before a chief has joined the run and
  // received the best evaluation: without it that state would lead to another end than the run.
  [[nodiscard]] bool may_save(bool has_joined) const noexcept {
    return has_joined || !keeps_best();
  }

 private:
  [[nodiscard]] bool judges() const noexcept {
    return rule_.target_accuracy != 0 || rule_.patience != 0;
  }
  void stop(std::uint64_t step, std::string why);

  Rule rule_;
  std::optional<std::uint64_t> next_;  // next evaluation; unset before the first step
  BestEvaluation best_;
  std::uint64_t stop_ = 0;
  std::string why_;
};

}  // namespace disttf::roles
