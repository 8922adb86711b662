// The sequence of what a trainer does in a run: it joins, computes and pushes until the last step
// has been made; a worker then waits for the result.
//   non-elastic   pull, then for each step: compute, push_pull
//   elastic       pull, then for each step: compute and push its micro-batches, await the step;
//                 compute and push those that turn out to be missing, await it again
//
// Its queries return the next action, and its calls report the outcome. It has no notion of time:
// how an operation proceeds is up to RunSession.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "roles/trainer/core/step_exchange.h"

namespace disttf::roles {

class Stepper {
 public:
  // The run, and this trainer's rank in it.
  struct Run {
    std::size_t rank = 0;
    bool sync_replicas = true;
    bool fully_synchronous = true;  // every gradient counts
    std::size_t micro_batches = 0;  // elastic: per step; 0: not elastic
  };
  explicit Stepper(const Run& run) : run_(run), pushed_(run.micro_batches) {}

  enum class Action : std::uint8_t {
    kPull,        // RunSession::begin_pull(), then replied()
    kCompute,     // the gradient of batch(), then computed()
    kPushPull,    // begin_push_pull(sequence()), then replied()
    kPush,        // RunSession::push(batch().slot), then pushed()
    kAwaitStep,   // begin_await_step(sequence()), then replied(), or needs()
    kLeave,       // the last step has been made; worker: begin_await_end(), then left();
                  // chief: begin_await_others(), then set_back() where they were
    kFetchFinal,  // begin_fetch_final(), then fetched()
    kEnd,         // result() returns whether there is a result
  };
  [[nodiscard]] Action next() const noexcept { return next_; }

  // The rows of the data that a gradient is computed from: of the epochs laid end to end, the batch
  // of that slot in that step.
  struct Batch {
    std::uint64_t step = 0;
    std::size_t slot = 0;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  [[nodiscard]] const Batch& batch() const noexcept { return batch_; }
  // Returns the batch that is likely to be next; elastic, after the last one of a step, if the same
  // trainers share the next step.
  [[nodiscard]] Batch batch_after() const noexcept;
  // Returns the number of the current step's push, above every number that a ps has told this
  // trainer to count from; see roles/ps/core/step_policy.h.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return numbered_ + 1; }
  // Steps that this process has made since its pull.
  [[nodiscard]] std::uint64_t made() const noexcept { return made_; }
  // The result of the last reply.
  [[nodiscard]] const StepResult& reply() const noexcept { return reply_; }

  void replied(const StepResult& reply);
  // Chief, instead of a step: RunSession::begin_peek() has ended the run before its last step; or
  // has joined it again, because the ps were restored to another state.
  void peeked(const StepResult& reply);
  void computed() noexcept;
  void pushed();
  // These micro-batches are missing.
  void needs(std::span<const std::uint64_t> micro_batches);
  // Not `released`: the ps were rolled back to another state. Returns true if the current
  // parameters are the result already and are to be kept; making the steps again gives
  // bit-identical ones.
  [[nodiscard]] bool left(bool released);
  // Chief: the same, not released, if the result is not kept.
  void roll_back() noexcept;
  // Instead of an answer, at any time: the run is over. A repeat has no effect.
  void run_over() noexcept;
  // The ps's parameters have been fetched: those of `step`, or none.
  void fetched(std::optional<std::uint64_t> step) noexcept;

  enum class Result : std::uint8_t {
    kNone,    // it was lost with a ps
    kInHand,  // the parameters of the last reply, or the fetched ones
    kKept,    // the parameters that were kept
  };
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  void go_on(const StepResult& reply);
  void begin_step();
  void next_micro_batch();
  // Elastic: returns whether it is a micro-batch of a step that was not computed here.
  [[nodiscard]] bool may_compute(std::uint64_t micro_batch) const noexcept;
  void end(Result result) noexcept;

  const Run run_;
  Action next_ = Action::kPull;
  Batch batch_;
  StepResult reply_;
  std::uint64_t made_ = 0;  // steps since this trainer has joined
  // The newest push, or the number that a ps has told it to count from.
  std::uint64_t numbered_ = 0;
  std::optional<std::uint64_t> kept_;  // the step of the kept parameters
  Result result_ = Result::kNone;
  // Elastic: of the current step.
  std::vector<bool> pushed_;            // by micro-batch: computed here
  std::vector<std::uint64_t> missing_;  // to be computed, in reverse order
};

}  // namespace disttf::roles
