#include "math/layers/dense.h"

#include <cmath>

#include "math/kernels_table.h"
#include "math/model_spec.h"

namespace disttf::math {
namespace {

constexpr std::array<std::string_view, 2> kDenseInitial = {"truncated_normal", "zeros"};

constexpr std::array<LayerField, 2> kDenseFields = {{
    {.name = "units", .about = "numbers that it gives", .least = 1, .most = double{kMaxUnits}},
    {.name = "initial",
     .about = "of the weights: `truncated_normal`, whose deviation is 1/sqrt(inputs), or `zeros`",
     .kind = LayerField::Kind::kWord,
     .words = kDenseInitial,
     .otherwise = kDenseInitial[0]},
}};

class Dense final : public Layer {
 public:
  Dense(const Shape& input, std::size_t units, double deviation)
      : Layer(input, {.channels = units},
              {{.suffix = "w", .shape = {input.size(), units}, .deviation = deviation},
               {.suffix = "b", .shape = {units}, .decays = false}}),
        inputs_(input.size()),
        units_(units) {}

  [[nodiscard]] LayerOperation operation() const noexcept override {
    return DenseProduct{.units = units_};
  }
  [[nodiscard]] std::uint64_t multiply_adds() const noexcept override {
    return std::uint64_t{inputs_} * units_;
  }
  [[nodiscard]] bool takes_pixels(const Products& products) const noexcept override {
    // Products that round their operands to bfloat16 have no variant for bytes.
    return products.product_of_pixels != nullptr;
  }
  [[nodiscard]] bool wants_many_rows() const noexcept override { return true; }
  [[nodiscard]] std::size_t scratch_floats(const Products& /*products*/) const noexcept override {
    return kProductScratchFloats;
  }
  [[nodiscard]] std::size_t gradient_rows() const noexcept override { return inputs_; }

  void forward(const LayerPass& pass) const noexcept override {
    const std::size_t first = pass.rows.begin * inputs_;
    float* const output = pass.output + pass.rows.begin * units_;
    const ProductShape shape{.rows = pass.rows.count(), .columns = units_, .depth = inputs_};
    if (pass.pixels != nullptr) {
      pass.products->product_of_pixels(pass.pixels + first, pass.variables[0], output, shape,
                                       pass.variables[1], pass.scratch);
    } else {
      pass.products->product(pass.input + first, pass.variables[0], output, shape,
                             pass.variables[1], pass.scratch);
    }
  }

  void backward(const LayerPass& pass) const noexcept override {
    pass.products->product_bt(pass.output_delta + pass.rows.begin * units_, pass.variables[0],
                              pass.input_delta + pass.rows.begin * inputs_,
                              {.rows = pass.rows.count(), .columns = inputs_, .depth = units_},
                              pass.scratch);
  }

  void gradient(const LayerPass& pass, Rows part,
                std::span<float* const> gradients) const noexcept override {
    // Exactly one part computes the biases' gradient: the one with the first rows.
    if (part.begin == 0) {
      pass.kernels->column_sums(pass.output_delta, gradients[1], pass.rows.count(), units_);
    }
    float* const weights = gradients[0] + part.begin * units_;
    // A part takes some columns of the input, so the distance between its rows is that of whole
    // rows.
    const ProductShape shape{
        .rows = part.count(), .columns = units_, .depth = pass.rows.count(), .a_stride = inputs_};
    if (pass.pixels != nullptr) {
      pass.products->product_at_of_pixels(pass.pixels + part.begin, pass.output_delta, weights,
                                          shape, pass.scratch);
    } else {
      pass.products->product_at(pass.input + part.begin, pass.output_delta, weights, shape,
                                pass.scratch);
    }
  }

 private:
  std::size_t inputs_;
  std::size_t units_;
};

std::unique_ptr<const Layer> make_dense(const LayerFields& fields, const Shape& input) {
  const bool is_zero = fields.word("initial") == "zeros";
  return std::make_unique<Dense>(
      input, fields.whole("units"),
      is_zero ? 0.0 : 1.0 / std::sqrt(static_cast<double>(input.size())));
}

std::optional<LayerValues> dense_for(const LayerOperation& operation) {
  const auto* const product = std::get_if<DenseProduct>(&operation);
  if (product == nullptr) {
    return std::nullopt;
  }
  return LayerValues{{"units", static_cast<double>(product->units)}};
}

constexpr LayerType kDense{.name = "dense",
                           .about = "each output is a sum over all inputs, and a bias",
                           .fields = kDenseFields,
                           .make = &make_dense,
                           .fields_for = &dense_for};

}  // namespace

const LayerType& dense() noexcept { return kDense; }

}  // namespace disttf::math
