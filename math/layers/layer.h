// The interface of a layer: one object for its position in a model. It knows its shapes and
// computes, but owns no numbers. Parameters, outputs and deltas belong to the model
// (math/model.cc), which passes their addresses in a LayerPass.
//
// forward() processes a batch from the first layer to the last. backward() propagates the gradient
// by each layer's output, its delta, from the last to the first. Both get some rows of the batch,
// so that threads share it: a row's bits must depend neither on the other rows of a call nor on
// `scratch`. A layer whose rows depend on each other (batch norm) measures the batch first:
// shared_floats(). Then gradient() computes the gradient by the parameters from all rows of the
// batch; there the threads share the output. Each layer's header defines the fixed order of its
// sums.
//
// Immutable: callable from any thread. Nothing here allocates after construction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "math/layers/operation.h"
#include "math/shape.h"

namespace disttf::math {

struct Kernels;
struct Products;

// [begin, end): rows of a batch, or of a matrix.
struct Rows {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t count() const noexcept { return end - begin; }
};

// A variable of a layer. Its elements are drawn from the normal distribution of this deviation,
// truncated at two deviations; 0: all are `initial`.
struct LayerVariable {
  std::string_view suffix;  // after the layer's name: "w", "b"
  std::vector<std::size_t> shape;
  double deviation = 0;
  float initial = 0;
  bool decays = true;  // with --weight_decay: weights do, biases do not
  // The momentum of a running statistic (math/parameter_layout.h): gradient() writes the batch's
  // value instead of a gradient. nullopt: the variable is trained.
  std::optional<float> momentum = std::nullopt;
};
inline constexpr std::size_t kMostLayerVariables = 4;

// The source of a layer's random numbers: functions of these and of what is drawn.
struct LayerDraws {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t first = 0;  // index of the batch's first row in the step
  std::uint32_t layer = 0;  // the layer's position in the model
};

// The data of a layer. Matrices are row-major, a row per example; each pointer points to the
// batch's first row.
struct LayerPass {
  const Kernels* kernels = nullptr;
  const Products* products = nullptr;
  Rows rows{};                                                // of the batch
  std::array<const float*, kMostLayerVariables> variables{};  // in the order of variables()
  // The input: floats; or, for a first layer that takes_pixels(), bytes with the meaning x / 255.
  const float* input = nullptr;
  const std::uint8_t* pixels = nullptr;
  float* output = nullptr;
  const float* output_delta = nullptr;  // the gradient by the output
  float* input_delta = nullptr;         // the gradient by the input
  const float* prepared = nullptr;      // the result of prepare()
  float* kept = nullptr;                // kept_floats() for each row, from forward() on
  float* shared = nullptr;              // shared_floats(), for the batch
  const LayerDraws* draws = nullptr;    // null: the model is evaluated, not trained
  float* scratch = nullptr;             // scratch_floats(), of this thread; 64-byte aligned
};

class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  [[nodiscard]] const Shape& input() const noexcept { return input_; }
  [[nodiscard]] const Shape& output() const noexcept { return output_; }
  // In the order of the flat vector, where they are adjacent.
  [[nodiscard]] std::span<const LayerVariable> variables() const& noexcept { return variables_; }
  // What forward() computes in inference.
  [[nodiscard]] virtual LayerOperation operation() const noexcept = 0;
  // For one example's forward pass. The backward pass takes as many for the input, and for the
  // parameters.
  [[nodiscard]] virtual std::uint64_t multiply_adds() const noexcept { return 0; }

  // Whether the output overwrites the input, and the input's delta the output's.
  [[nodiscard]] virtual bool in_place() const noexcept { return false; }
  // Whether backward() reads the output: then a following in-place layer gets memory of its own,
  // and so does the gradient by the output.
  [[nodiscard]] virtual bool needs_output() const noexcept { return false; }
  // False: the output is the input with another shape; neither forward() nor backward() is called.
  [[nodiscard]] virtual bool computes() const noexcept { return true; }
  // Whether it accepts bytes as the first layer, with these products.
  [[nodiscard]] virtual bool takes_pixels(const Products& /*products*/) const noexcept {
    return false;
  }
  // True: larger calls are faster. False: a few rows at a time pass through several such layers in
  // a row, while they are in the cache.
  [[nodiscard]] virtual bool wants_many_rows() const noexcept { return false; }
  // Floats for each row of a batch that forward() keeps for the backward pass.
  [[nodiscard]] virtual std::size_t kept_floats() const noexcept { return 0; }
  // With these products.
  [[nodiscard]] virtual std::size_t scratch_floats(const Products& /*products*/) const noexcept {
    return 0;
  }

  // Not 0: forward() and backward() need values computed from all rows of the batch, of this many
  // floats. measure_rows() stores in `kept` what is needed from some rows, whose input is
  // available. Then measure_batch(), once per batch, combines all rows into `shared` in a fixed
  // order. In evaluation only measure_batch() is called, because rows are independent there. The
  // last two do the same before backward(), when the rows' output deltas are available; also for
  // the first layer.
  [[nodiscard]] virtual std::size_t shared_floats() const noexcept { return 0; }
  virtual void measure_rows(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_batch(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_rows_back(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_batch_back(const LayerPass& /*pass*/) const noexcept {}
  // The smallest batch for training.
  [[nodiscard]] virtual std::size_t least_rows() const noexcept { return 1; }

  // A copy of the variables in the order that backward() needs: made once per batch, for all
  // threads. Not for the first layer.
  [[nodiscard]] virtual std::size_t prepared_floats() const noexcept { return 0; }
  virtual void prepare(const LayerPass& /*pass*/, float* /*prepared*/) const noexcept {}

  virtual void forward(const LayerPass& pass) const noexcept = 0;
  // Writes input_delta. Not called for the first layer.
  virtual void backward(const LayerPass& pass) const noexcept = 0;

  // The gradient by the variables can be computed in parts: rows of the first variable, as a matrix
  // [gradient_rows(), columns]. 0: there are no variables.
  [[nodiscard]] virtual std::size_t gradient_rows() const noexcept { return 0; }
  // Writes rows `part` of it, from all of pass.rows; the other variables together with its first
  // row.
  virtual void gradient(const LayerPass& /*pass*/, Rows /*part*/,
                        std::span<float* const> /*gradients*/) const noexcept {}

 protected:
  Layer(Shape input, Shape output, std::vector<LayerVariable> variables = {})
      : input_(input), output_(output), variables_(std::move(variables)) {}

 private:
  Shape input_;
  Shape output_;
  std::vector<LayerVariable> variables_;
};

}  // namespace disttf::math
