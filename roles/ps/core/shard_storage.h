// What a shard keeps in memory: the parameters of a range, the optimizer's state, the answers that
// carry parameters, and their rounded form.
//
// In a fully synchronous run a step is made from one buffer into the other. So the parameters of
// the previous step are kept beside the newest, and a reply that is still being sent is not
// disturbed. A trainer that was lost between its pushes to two ps finds these one step apart, and
// needs the older parameters from both to compute its gradient again. In the other modes a step is
// made in place, and each answer is a copy.
//
// With averages (OptimizerSpec::average_decay) the averages are the result of the run: every answer
// after the last step carries them instead of the parameters.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/aligned.h"
#include "math/optimizer.h"
#include "math/parameter_layout.h"
#include "math/tree_sum.h"
#include "run/run_config.h"
#include "run/wire_format.h"

namespace disttf::roles {

// Memory that a shard answers from: the parameters and, if these may change while an answer is
// still being sent, a copy for each trainer.
struct Arena {
  std::span<float> floats;            // zeroed
  std::shared_ptr<const void> owner;  // keeps `floats` alive; the shard holds it
  // What trainers read is written there with non-temporal stores (math/non_temporal_stores.h): they
  // read it on other processors before this one does.
  bool streams = false;
  // Returns where the receiver of updates (Shard::on_update) is to read the next update's gradient;
  // called for each update. If it is unset or returns an empty span, the gradient is read where it
  // lies. If it returns update_size_with_state() floats, the state before the update is copied
  // there as well.
  std::function<std::span<float>()> place_of_update = {};
};

class ShardStorage {
 public:
  // Returns the size of an arena in floats. Each part of it begins at a page boundary
  // (kArenaAlignment), so that a trainer can map one part alone.
  [[nodiscard]] static std::size_t arena_size(const RunConfig& config, math::Range range);
  // Returns how many bytes a new shard takes: its arena, and the optimizer's state.
  [[nodiscard]] static std::uint64_t bytes_taken(const RunConfig& config, math::Range range);
  static constexpr std::size_t kArenaAlignment = 4096 / sizeof(float);
  // Alignment of the tensors behind a gradient, in floats: 64 bytes.
  static constexpr std::size_t kTensorAlignment = 64 / sizeof(float);

  // As Shard's.
  ShardStorage(const RunConfig& config, math::Range range, std::size_t threads, Arena arena);

  // --- a training state

  // Returns the floats of a state: (1 + optimizer tensors) * range.size(); and the names of the
  // optimizer's tensors, in the order in which they lie in a state.
  [[nodiscard]] std::size_t state_size();
  [[nodiscard]] std::vector<std::string> state_names();
  // Calls take(tensor) for each tensor of a state: the parameters, then the optimizer's.
  template <typename Take>
  void for_each_tensor(Take take) {
    take(newest());
    for (const math::StateTensor& tensor : optimizer_.state()) {
      take(tensor.values);
    }
  }
  // Returns the tensors of a copy: those of a state, and the previous parameters, if there are any.
  [[nodiscard]] std::vector<std::span<const float>> tensors();
  // Returns where to receive a state. With `parameters_only` the optimizer starts from zero.
  [[nodiscard]] std::vector<std::span<float>> begin_restore(bool parameters_only);
  // The same for the tensors of a copy. `with_previous`: there is one more than in a state.
  [[nodiscard]] std::vector<std::span<float>> begin_fill(bool with_previous);
  // What was to be received is complete.
  void finish_restore(bool with_previous);

  // --- an update

  // Computes the parameters that follow those of `step`, from the sum of `count` gradients.
  // `as_copy`: no trainer reads them, but the next update does: no non-temporal stores.
  void update(const math::TreeSum::Halves& gradient, std::size_t count, std::uint64_t step,
              bool as_copy = false);
  // Fully synchronous, with averages: returns whether there is a place for the result; copies the
  // averages there, as they may be replaced while replies with the result are still being sent.
  [[nodiscard]] bool has_results() const noexcept { return !results_[0].empty(); }
  void keep_result();
  // In floats: the size of a gradient, padded to the next boundary; and with a state behind it.
  [[nodiscard]] std::size_t padded_size() const noexcept;
  [[nodiscard]] std::size_t update_size_with_state();
  // Copies the state to `to` and from `from`: tensors as in an update with a state.
  void copy_state(std::span<float> to);
  void take_state(std::span<const float> from);
  // Returns the whole gradient: in `place`, where it is read later, if that is not empty. Otherwise
  // `gradient` becomes whole, by `tree`.
  [[nodiscard]] std::span<const float> whole(math::TreeSum::Halves& gradient, math::TreeSum* tree,
                                             std::span<float> place) const;

  // --- answers

  // Returns the parameters for a trainer. `is_last`: no step follows. `is_result`: no more steps
  // are waited for, though some may be missing here.
  [[nodiscard]] std::span<const float> answer(std::size_t trainer, bool is_last, bool is_result);
  // Returns an answer's parameters in the form in which they are sent, if wire() rounds them. They
  // do not change for as long as the parameters do not.
  [[nodiscard]] std::span<const std::byte> as_sent(std::size_t trainer,
                                                   std::span<const float> parameters);
  // The form of a gradient in a push's body. If it is not raw floats, its bytes are received into
  // packed_inbox() first, and unpacked from there.
  [[nodiscard]] const WireFormat& wire() const noexcept { return wire_; }
  // REQUIRES: bytes <= longest_gradient(wire(), range.size()).
  [[nodiscard]] std::span<std::byte> packed_inbox(std::size_t trainer, std::size_t bytes);

  [[nodiscard]] std::span<float> newest() const noexcept { return buffers_[newest_]; }
  // Returns what is evaluated: the parameters, or with averages these.
  [[nodiscard]] std::span<const float> evaluated() const noexcept {
    return optimizer_.averages() ? optimizer_.average() : newest();
  }
  // Returns the parameters of the previous step; nullopt if no step was made since a restore.
  [[nodiscard]] std::optional<std::span<const float>> previous() const;

 private:
  // Parameters in the form in which they are sent.
  struct Rounded {
    std::vector<std::byte> bytes;
    bool is_current = false;
  };
  struct Trainer {
    std::span<float> answer;        // the content of the last answer, where parameters may change
    Rounded rounded;                // of `answer`
    std::vector<std::byte> packed;  // a gradient's body that is not raw floats
  };

  void lay_out(std::span<float> arena);
  // Copies parameters to the memory from which a trainer reads them.
  void copy_out(std::span<const float> from, std::span<float> to) const noexcept;

  // Constant after construction.
  std::size_t floats_;  // of the range
  bool is_double_buffered_;
  math::RateSchedule schedule_;
  math::Isa isa_;
  WireFormat wire_;
  bool streams_;                             // Arena::streams
  std::shared_ptr<const void> arena_owner_;  // holds buffers and answers, or
  math::AlignedVector own_arena_;            // this does

  std::array<std::span<float>, 2> buffers_;  // in place: only the first
  std::array<Rounded, 2> rounded_;           // of the buffers
  // `result_` is the buffer of the averages after the last step; the other one may still be in
  // replies from before a restore.
  std::array<std::span<float>, 2> results_;
  std::size_t result_ = 0;
  std::size_t newest_ = 0;
  bool has_previous_ = false;
  bool begins_average_ = false;  // the current restore brings no average
  math::Optimizer optimizer_;
  std::vector<Trainer> trainers_;  // by rank
};

}  // namespace disttf::roles
