// When a run ends before its last step, by what the evaluations on the way have found on the
// validation set: --target_accuracy and --patience.
//
// A function of the evaluations alone, so where every gradient counts whoever leads the run, and
// however often it is set back, comes to the same step. The parameters of that step are the result:
// no step is made between them and the chief's word (roles/ps/core/shard.h, conclude()).
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "math/evaluation.h"
#include "roles/run/early_end.h"

namespace disttf::roles {

class EarlyStop {
 public:
  // As RunConfig's.
  struct Rule {
    std::uint64_t train_steps = 0;
    std::uint64_t eval_every = 0;
    float target_accuracy = 0;
    std::uint64_t patience = 0;
  };
  explicit EarlyStop(const Rule& rule) : rule_(rule) {}

  // Whether the parameters of that step are to be evaluated before another one is made of them. In
  // the modes where steps are left out: of the first step that is seen after a multiple.
  [[nodiscard]] bool is_due(std::uint64_t step);
  // They were.
  void evaluated(std::uint64_t step, const math::Evaluation& validation);
  // Whether the run ends with them.
  [[nodiscard]] bool stops_at(std::uint64_t step) const noexcept {
    return !why_.empty() && step == stop_;
  }
  // The sentence. REQUIRES: stops_at() some step.
  [[nodiscard]] const std::string& why() const noexcept { return why_; }

  // --patience: the best one is to be known to whoever leads the run next.
  [[nodiscard]] bool keeps_best() const noexcept { return rule_.patience != 0; }
  [[nodiscard]] const BestEvaluation& best() const noexcept { return best_; }
  // Of an earlier process, or a checkpoint.
  void learn(const BestEvaluation& other) noexcept { best_.learn(other); }

  // What a checkpoint is to say. `told`: by the ps, which may have come when nothing was to be
  // evaluated after it: before a signal, or when all was done. `result`: the step of the
  // parameters, where they are the run's result.
  [[nodiscard]] EarlyEnd saved_with(const BestEvaluation& told,
                                    std::optional<std::uint64_t> result) noexcept;
  // Whether what the ps hold may be saved at all. Not before a chief has joined the run and been
  // told: without the best evaluation that state would go on to another end than the run.
  [[nodiscard]] bool may_save(bool has_joined) const noexcept {
    return has_joined || !keeps_best();
  }

 private:
  [[nodiscard]] bool judges() const noexcept {
    return rule_.target_accuracy != 0 || rule_.patience != 0;
  }
  void stop(std::uint64_t step, std::string why);

  Rule rule_;
  std::optional<std::uint64_t> next_;  // evaluation; not known before the first step
  BestEvaluation best_;
  std::uint64_t stop_ = 0;
  std::string why_;
};

}  // namespace disttf::roles
