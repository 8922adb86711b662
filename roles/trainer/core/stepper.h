// What a trainer does in a run, one thing after the other: joins, computes, pushes, until the last
// step has been made; and what a worker does then, until it has the result.
//   non-elastic   pull, then for each step: compute, push_pull
//   elastic       pull, then for each step: compute and push its micro-batches, await the step;
//                 compute and push those that turn out to be missing, await it again
//
// Says what is to be done next, and is told what has come of it. It has no time: how an operation
// goes on meanwhile is RunSession's matter.
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
  // Of the run, and this trainer's place in it.
  struct Run {
    std::size_t rank = 0;
    bool sync_replicas = true;
    bool strict = true;             // every gradient counts
    std::size_t micro_batches = 0;  // elastic: of a step; 0: not elastic
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
    kEnd,         // result() says what there is of one
  };
  [[nodiscard]] Action next() const noexcept { return next_; }

  // Which rows of the data a gradient is computed from: of the epochs laid end to end, the batch of
  // that slot in that step.
  struct Batch {
    std::uint64_t step = 0;
    std::size_t slot = 0;
    friend bool operator==(const Batch&, const Batch&) = default;
  };
  [[nodiscard]] const Batch& batch() const noexcept { return batch_; }
  // Which one is likely to be next; elastic, after the last of a step, if the same trainers share
  // the next one.
  [[nodiscard]] Batch batch_after() const noexcept;
  // Of the step that is being made: what its push is numbered by, above whatever any ps has told to
  // count from; see roles/ps/core/shard.h.
  [[nodiscard]] std::uint64_t sequence() const noexcept { return numbered_ + 1; }
  // Steps that this process has made since it has pulled.
  [[nodiscard]] std::uint64_t made() const noexcept { return made_; }
  // Where the last reply has brought this trainer.
  [[nodiscard]] const StepResult& reply() const noexcept { return reply_; }

  void replied(const StepResult& reply);
  // Chief, instead of a step: RunSession::begin_peek() has ended the run before its last one; or
  // has joined it again, as the ps were set to another state.
  void peeked(const StepResult& reply);
  void computed() noexcept;
  void pushed();
  // Micro-batches that are missing.
  void needs(std::span<const std::uint64_t> micro_batches);
  // Not `released`: the ps were set back to another state. True: the parameters in hand are the
  // result already, and are to be kept; every time has the same bits.
  [[nodiscard]] bool left(bool released);
  // Chief: the same, not released, where the result is not kept.
  void set_back() noexcept;
  // Instead of an answer, at any time: the run is over. A repeat changes nothing.
  void run_over() noexcept;
  // The parameters that the ps hold are here: of that step, or none.
  void fetched(std::optional<std::uint64_t> step) noexcept;

  enum class Result : std::uint8_t {
    kNone,    // it went with a ps
    kInHand,  // the parameters of the last reply, or those that were fetched
    kKept,    // those that were kept
  };
  [[nodiscard]] Result result() const noexcept { return result_; }

 private:
  void go_on(const StepResult& reply);
  void begin_step();
  void next_micro_batch();
  // Elastic: it is one of a step, and was not computed here.
  [[nodiscard]] bool may_compute(std::uint64_t micro_batch) const noexcept;
  void end(Result result) noexcept;

  const Run run_;
  Action next_ = Action::kPull;
  Batch batch_;
  StepResult reply_;
  std::uint64_t made_ = 0;             // steps, since this trainer has joined
  std::uint64_t numbered_ = 0;         // the newest push; or what a ps has told to count from
  std::optional<std::uint64_t> kept_;  // the step of the parameters that were kept
  Result result_ = Result::kNone;
  // Elastic: of the step that is being made.
  std::vector<bool> pushed_;            // by micro-batch: computed here
  std::vector<std::uint64_t> missing_;  // to be computed; the next is the last
};

}  // namespace disttf::roles
