// What every layer is: one object for its place in a model, which knows its shapes and computes,
// and holds no numbers. Parameters, outputs and deltas are the model's (math/model.cc), which says
// in a LayerPass where they lie.
//
// A batch goes through the layers from the first to the last, forward(), and the loss by each
// layer's output, its delta, comes back from the last to the first, backward(). Both are given some
// rows of the batch, so that threads share it: a row's bits must not depend on which other rows a
// call is given, nor on `scratch`. A layer for which a row does depend on the others (batch norm)
// measures the batch first: shared_floats(). Then gradient() makes the loss by the parameters, of
// all rows of the batch; there the threads share what is computed. A sum's order is fixed and said
// in the layer's header.
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

// A variable of a layer. Its elements are drawn from the normal distribution of this deviation, cut
// at two; 0: all are `initial`.
struct LayerVariable {
  std::string_view suffix;  // behind the layer's name: "w", "b"
  std::vector<std::size_t> shape;
  double deviation = 0;
  float initial = 0;
  bool decays = true;  // with --weight_decay: weights do, biases do not
  // Of a running statistic its momentum (math/parameter_layout.h): gradient() writes what the batch
  // has, in the place of the loss by the variable. None: it is trained.
  std::optional<float> momentum = std::nullopt;
};
inline constexpr std::size_t kMostLayerVariables = 4;

// Where the random numbers of a layer come from: functions of these and of who asks for which.
struct LayerDraws {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::uint64_t first = 0;  // the place of the batch's first row among all rows of the step
  std::uint32_t layer = 0;  // the layer's place in the model
};

// What a layer computes with. Matrices are row-major, a row an example; each pointer is that of the
// batch's first row.
struct LayerPass {
  const Kernels* kernels = nullptr;
  const Products* products = nullptr;
  Rows rows{};                                                // of the batch
  std::array<const float*, kMostLayerVariables> variables{};  // as variables() has them
  // The input: floats; or, of the first layer if it takes_pixels(), bytes that stand for x / 255.
  const float* input = nullptr;
  const std::uint8_t* pixels = nullptr;
  float* output = nullptr;
  const float* output_delta = nullptr;  // the loss by the output
  float* input_delta = nullptr;         // the loss by the input
  const float* prepared = nullptr;      // what prepare() has made of the variables
  float* kept = nullptr;                // kept_floats() for each row, from forward() on
  float* shared = nullptr;              // shared_floats(), of the batch
  const LayerDraws* draws = nullptr;    // null: the model is evaluated, not trained
  float* scratch = nullptr;             // scratch_floats(), this thread's; 64-byte aligned
};

class Layer {
 public:
  virtual ~Layer() = default;
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;

  [[nodiscard]] const Shape& input() const noexcept { return input_; }
  [[nodiscard]] const Shape& output() const noexcept { return output_; }
  // In the order of the flat vector, one after the other there.
  [[nodiscard]] std::span<const LayerVariable> variables() const& noexcept { return variables_; }
  // What forward() does of a model that answers.
  [[nodiscard]] virtual LayerOperation operation() const noexcept = 0;
  // Of one example's way forward. Back it takes as many for the input, and for the parameters.
  [[nodiscard]] virtual std::uint64_t multiply_adds() const noexcept { return 0; }

  // Whether the output takes the input's place, and the input's delta the output's.
  [[nodiscard]] virtual bool in_place() const noexcept { return false; }
  // Whether backward() reads the output: then a layer behind it that is in place gets a place of
  // its own, and so does the loss by the output.
  [[nodiscard]] virtual bool needs_output() const noexcept { return false; }
  // False: the output is the input, by another shape; neither forward() nor backward() is called.
  [[nodiscard]] virtual bool computes() const noexcept { return true; }
  // As the first layer: from bytes, with these products.
  [[nodiscard]] virtual bool takes_pixels(const Products& /*products*/) const noexcept {
    return false;
  }
  // True: the more rows in a call, the better. False: a few rows at a time go through as many such
  // layers as follow each other, while they are in the cache.
  [[nodiscard]] virtual bool wants_many_rows() const noexcept { return false; }
  // Floats for each row of a batch that forward() leaves for the way back.
  [[nodiscard]] virtual std::size_t kept_floats() const noexcept { return 0; }
  // With these products.
  [[nodiscard]] virtual std::size_t scratch_floats(const Products& /*products*/) const noexcept {
    return 0;
  }

  // Not 0: forward() and backward() need something of all rows of the batch, which is made first
  // and lies in so many floats. measure_rows() leaves in `kept` what is needed of some rows, whose
  // input is there; then measure_batch(), once for each batch, makes `shared` of all rows' in a
  // fixed order. Of a model that is evaluated measure_batch() alone is called: rows have nothing to
  // do with each other there. The last two are the same before backward(), where the rows' output
  // deltas are there; also of the first layer.
  [[nodiscard]] virtual std::size_t shared_floats() const noexcept { return 0; }
  virtual void measure_rows(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_batch(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_rows_back(const LayerPass& /*pass*/) const noexcept {}
  virtual void measure_batch_back(const LayerPass& /*pass*/) const noexcept {}
  // Of a batch that is trained on.
  [[nodiscard]] virtual std::size_t least_rows() const noexcept { return 1; }

  // What backward() needs of the variables in another order: made once for each batch, for all
  // threads. Not of the first layer.
  [[nodiscard]] virtual std::size_t prepared_floats() const noexcept { return 0; }
  virtual void prepare(const LayerPass& /*pass*/, float* /*prepared*/) const noexcept {}

  virtual void forward(const LayerPass& pass) const noexcept = 0;
  // Writes input_delta. Not called of the first layer.
  virtual void backward(const LayerPass& pass) const noexcept = 0;

  // The loss by the variables can be computed in parts: rows of the first one, seen as a matrix
  // [gradient_rows(), columns]. 0: there are no variables.
  [[nodiscard]] virtual std::size_t gradient_rows() const noexcept { return 0; }
  // Writes rows `part` of it, from all of pass.rows; the other variables with its first row.
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
