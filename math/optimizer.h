// Optimizers: element-wise updates of a range of the parameter vector, so the division of the
// vector among ps cannot change the result. The state is kept beside the parameters, on the ps.
//
// g is the mean gradient: gradient_sum * scale. The formulas are TensorFlow's GradientDescent-,
// Momentum-, Adagrad- and AdamOptimizer's, each in a file of its own such as optimizer_adam.h;
// optimizer_rules.h is their registry and explains how to add one:
//   sgd:      w -= lr g
//   momentum: m = momentum m + g;  w -= lr m
//   adagrad:  a += g^2;            w -= lr g / sqrt(a)              a starts at 0.1
//   adam:     m = b1 m + (1-b1) g; v = b2 v + (1-b2) g^2;
//             w -= lr sqrt(1-b2^t)/(1-b1^t) m / (sqrt(v) + epsilon)
//   adamw:    as adam, and w -= lr weight_decay w, with w before the step
//
// Weight decay: for adamw as above. For all others g becomes g + weight_decay w first, the gradient
// of an L2 penalty of weight_decay / 2 |w|^2. It applies to the parameters with Variable::decays:
// weights, not biases.
//
// A variable's factor of the learning rate (Variable::rate_factor) multiplies lr, and so the weight
// decay of adamw. A variable with factor 0 is never changed, and neither is its state.
//
// Running statistics (math/parameter_layout.h) have no optimizer. Pushed values are averaged like
// gradients, and then, without rate or decay:
//   v = momentum v + (1 - momentum) g
//
// Averaged parameters, with an average_decay d: after update t of a run
//   e -= (1 - d_t) (e - w),  d_t = min(d, (1 + t) / (10 + t)):  d_t e + (1 - d_t) w
// as TensorFlow's ExponentialMovingAverage with num_updates; its smaller d_t soon forgets the
// start. e begins with the parameters and is one more tensor of the state. Running statistics are
// averaged as well, so they match the averaged parameters.
//
// Updates use only + - * / sqrt, each rounded once: bit-identical on every instruction set and
// machine, for the whole vector or any pieces of it.
//
// Errors: an OptimizerSpec is user input, so validate() throws; everything else would be a bug.
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
// A rate that trains well in the default number of steps with linear decay: a tenth of it if the
// model has convolutions, whose weights each see hundreds of positions of an image.
[[nodiscard]] float default_learning_rate(OptimizerKind kind,
                                          bool is_convolutional = false) noexcept;
// The initial value of a state tensor of this name; 0 for unknown names.
[[nodiscard]] float initial_state_value(std::string_view tensor) noexcept;
// Whether an optimizer of any kind keeps a tensor of this name ("m", "average").
[[nodiscard]] bool is_state_tensor_name(std::string_view tensor) noexcept;
// How many tensors an optimizer of that kind keeps, each as long as the parameters.
[[nodiscard]] std::size_t state_tensors(const OptimizerSpec& spec) noexcept;

// Throws std::invalid_argument with one sentence: the field, its value, what is allowed. Checks all
// fields, including those of other kinds.
void validate(const OptimizerSpec& spec);

struct OptimizerUpdate;  // see kernels_table.h; opaque to the other folders

// The name of the averaged parameters among the state tensors, of which it is the last.
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
  // an update, including the caller; fewer if it is too small to be worth it. Results do not depend
  // on them. `decaying`: the floats of the range with weight decay, in order, disjoint
  // (ParameterLayout::decaying()); nullopt: all. `running`: those that are running statistics
  // (ParameterLayout::running()), likewise. `factors`: those with a factor of the learning rate
  // (ParameterLayout::rate_factors()), likewise. REQUIRES: isa is in supported_isas(); threads > 0;
  // with `running`, `decaying` is given; `running` overlaps neither of the others.
  Optimizer(OptimizerSpec spec, std::size_t size, Isa isa, std::size_t threads = 1,
            const std::optional<std::vector<Range>>& decaying = std::nullopt,
            const std::vector<RunningRange>& running = {},
            const std::vector<RateRange>& factors = {});

  // Whether updates that are not in place use non-temporal stores (math/non_temporal_stores.h): for
  // parameters that other processors read before this one does. Off by default.
  void stream_updates(bool streams) noexcept { streams_ = streams; }

  // Makes one update and allocates nothing. `step` counts applied updates from 1 (adam's t).
  // `rate_factor`: the factor of lr in this step, for schedules. The new parameters are written to
  // `updated`, which is `parameters` itself or does not overlap it. `last`, unless empty, is added
  // to the sum first, in the same pass over the memory. REQUIRES: all have `size` floats, the
  // gradients overlap no parameters; step > 0.
  void apply(std::span<const float> parameters, std::span<float> updated,
             std::span<const float> gradient_sum, float scale, std::uint64_t step,
             float rate_factor = 1.0F, std::span<const float> last = {});
  // In place.
  void apply(std::span<float> parameters, std::span<const float> gradient_sum, float scale,
             std::uint64_t step, float rate_factor = 1.0F) {
    apply(parameters, parameters, gradient_sum, scale, step, rate_factor);
  }

  // The state, for saving and restoring. The spans live as long as the optimizer.
  [[nodiscard]] std::vector<StateTensor> state();
  // Resets the state to that of a new optimizer; begin_average() has to follow.
  void reset();
  // Whether it averages parameters: average_decay is not 0.
  [[nodiscard]] bool averages() const noexcept { return spec_.average_decay != 0.0F; }
  // Sets the average to these parameters. REQUIRES: averages(); as many as the range has.
  void begin_average(std::span<const float> parameters);
  // REQUIRES: averages().
  [[nodiscard]] std::span<const float> average() const noexcept { return state_.back().span(); }

 private:
  // A part of the range whose floats are all updated alike.
  struct Stretch {
    std::size_t end = 0;  // it begins at the end of the previous one
    bool decays = false;
    std::optional<float> momentum;  // of running statistics
    float rate_factor = 1;
  };

  void plan_stretches(std::span<const Range> decaying, std::span<const RunningRange> running,
                      std::span<const RateRange> factors);
  // Updates the floats [begin, end) of `whole`.
  void apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                  std::size_t end) noexcept;
  // The same; writes the new parameters to `to`, [end - begin].
  void apply_part(const OptimizerUpdate& whole, float average_rate, std::size_t begin,
                  std::size_t end, float* to) noexcept;
  void apply_stretch(const OptimizerUpdate& whole, std::size_t begin, const Stretch& stretch,
                     float* to) noexcept;

  OptimizerSpec spec_;
  const Kernels* kernels_;
  std::size_t size_;
  std::vector<Stretch> stretches_;    // they cover the range
  std::vector<AlignedVector> state_;  // the rule's tensors and the average, each of size_ floats
  bool streams_ = false;
  std::unique_ptr<ThreadPool> pool_;
};

// to[i] = a[i] + b[i]. REQUIRES: equal sizes; `to` is `a` or overlaps neither.
void add(std::span<float> to, std::span<const float> a, std::span<const float> b, Isa isa);

}  // namespace disttf::math
