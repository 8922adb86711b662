// Optimizers: element-wise updates of a range of the parameter vector, so how the vector is cut
// over ps cannot change the result. State lives beside the parameters, on the ps.
//
// g is the mean gradient: gradient_sum * scale. The formulas are TensorFlow's GradientDescent-,
// Momentum-, Adagrad- and AdamOptimizer's, each in a file of its own, optimizer_adam.h;
// optimizer_rules.h is their registry and says how one is added:
//   sgd:      w -= lr g
//   momentum: m = momentum m + g;  w -= lr m
//   adagrad:  a += g^2;            w -= lr g / sqrt(a)              a starts at 0.1
//   adam:     m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
//             w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon)
//   adamw:    adam's, and w -= lr weight_decay w, of the w from before the step
//
// Weight decay: for adamw as above, for all others g becomes g + weight_decay w first, the gradient
// of an L2 penalty of weight_decay / 2 |w|^2. It is of the parameters that Variable::decays says:
// weights, not biases.
//
// Running statistics (math/parameter_layout.h) are none of this; what is pushed of them is averaged
// as gradients are, and then, without rate or decay:
//   v = momentum v + (1 - momentum) g
//
// Averaged parameters, where there is an average_decay d: after update t of a run
//   e -= (1 - d_t) (e - w),  d_t = min(d, (1 + t) / (10 + t)):  d_t e + (1 - d_t) w
// as TensorFlow's ExponentialMovingAverage has it with num_updates, whose smaller d_t soon forgets
// the start. e begins with the parameters, and is one more tensor of the state. Running statistics
// are averaged as well: they are then those of about the parameters that the others are averaged
// of.
//
// The updates use + - * / sqrt alone, each rounded once: the same bits on every instruction set
// and machine, for the whole vector or any pieces of it.
//
// Errors: an OptimizerSpec is the user's, so validate() throws; everything else is our own bug.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"
#include "math/optimizer_spec.h"
#include "math/parameter_layout.h"
#include "math/thread_pool.h"

namespace disttf::math {

[[nodiscard]] std::string_view optimizer_name(OptimizerKind kind) noexcept;  // "sgd", ...
[[nodiscard]] std::optional<OptimizerKind> optimizer_from_name(std::string_view name) noexcept;
// By OptimizerKind.
[[nodiscard]] std::span<const std::string_view> optimizer_names() noexcept;
// What trains well in the default number of steps, with linear decay: a tenth of it where the model
// has convolutions, whose weights each see hundreds of positions of an image.
[[nodiscard]] float default_learning_rate(OptimizerKind kind,
                                          bool is_convolutional = false) noexcept;
// What a new optimizer fills its state tensor of this name with; 0 where none has such a one.
[[nodiscard]] float initial_state_value(std::string_view tensor) noexcept;
// How many tensors, each as long as the parameters, an optimizer of that kind keeps.
[[nodiscard]] std::size_t state_tensors(const OptimizerSpec& spec) noexcept;

// Throws std::invalid_argument with one sentence: the field, its value, what is allowed. All
// fields are checked, those of other kinds too.
void validate(const OptimizerSpec& spec);

struct OptimizerUpdate;  // see kernels_table.h; opaque to the other folders

// The name of the averaged parameters among the tensors of the state, of which it is the last.
inline constexpr std::string_view kAverageName = "average";

// One tensor of optimizer state, for checkpoints: "m", "v", "momentum", "accumulator", "average".
struct StateTensor {
  std::string_view name;
  std::span<float> values;  // as many as the range has parameters
};

// The optimizer of one range. Not thread-safe: the ps's thread owns it.
class Optimizer {
 public:
  // `size`: floats in the range; may be 0. Throws as validate() does. `threads`: how many compute
  // an update, the caller among them; fewer where it is too small to be worth it. The bits do not
  // depend on them. `decaying`: the floats of the range that spec.weight_decay is for, in order,
  // disjoint (ParameterLayout::decaying()); none given: all of them. `running`: those that are
  // running statistics (ParameterLayout::running()), likewise. REQUIRES: isa is in
  // supported_isas(); threads > 0; with `running`, `decaying` is given, and they are disjoint.
  Optimizer(OptimizerSpec spec, std::size_t size, Isa isa, std::size_t threads = 1,
            const std::optional<std::vector<Range>>& decaying = std::nullopt,
            const std::vector<RunningRange>& running = {});

  // Whether new parameters that do not take the old ones' place are streamed (math/streaming.h):
  // for those that other processors read before this one does. Not at first.
  void stream_updates(bool streams) noexcept { streams_ = streams; }

  // One update. `step` counts applied updates from 1 (adam's t). `rate_factor`: what lr is
  // multiplied by in this step, for schedules. Nothing is allocated. The new parameters go to
  // `updated`, which is `parameters` itself or does not overlap it. `last`, unless empty: what
  // is to be added to the sum first, in the same pass over the memory.
  // REQUIRES: all have `size` floats, the gradients overlap no parameters; step > 0.
  void apply(std::span<const float> parameters, std::span<float> updated,
             std::span<const float> gradient_sum, float scale, std::uint64_t step,
             float rate_factor = 1.0F, std::span<const float> last = {});
  // In place.
  void apply(std::span<float> parameters, std::span<const float> gradient_sum, float scale,
             std::uint64_t step, float rate_factor = 1.0F) {
    apply(parameters, parameters, gradient_sum, scale, step, rate_factor);
  }

  // The state, to be saved from or restored into. The spans live as long as the optimizer.
  [[nodiscard]] std::vector<StateTensor> state();
  // Back to the state that a new one begins with; begin_average() is to follow.
  void reset();
  // Whether it averages parameters: average_decay is not 0.
  [[nodiscard]] bool averages() const noexcept { return spec_.average_decay != 0.0F; }
  // The average becomes these parameters. REQUIRES: averages(); as many as the range has.
  void begin_average(std::span<const float> parameters);
  // REQUIRES: averages().
  [[nodiscard]] std::span<const float> average() const noexcept { return state_.back().span(); }

 private:
  // Of the range: floats that all decay, or none of which does; or running statistics.
  struct Stretch {
    std::size_t end = 0;  // it begins where the one before it ends
    bool decays = false;
    std::optional<float> momentum;  // of running statistics
  };

  void plan_stretches(const std::optional<std::vector<Range>>& decaying,
                      const std::vector<RunningRange>& running);
  // Of the floats [begin, end) of what `whole` updates.
  void apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                  std::size_t end) noexcept;
  // The same; the new parameters go to `to`, [end - begin].
  void apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                  std::size_t end, float* to) noexcept;
  void apply_stretch(const OptimizerUpdate& whole, std::size_t begin, const Stretch& stretch,
                     float* to) noexcept;

  OptimizerSpec spec_;
  const Kernels* kernels_;
  std::size_t size_;
  std::vector<Stretch> stretches_;    // the whole range
  std::vector<AlignedVector> state_;  // the rule's tensors and the average, each of size_ floats
  bool streams_ = false;
  std::unique_ptr<ThreadPool> pool_;
};

// to[i] = a[i] + b[i]. REQUIRES: equal sizes; `to` is `a` or overlaps neither.
void add(std::span<float> to, std::span<const float> a, std::span<const float> b, Isa isa);

}  // namespace disttf::math
