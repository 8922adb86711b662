#include "bench/products.h"

#include <cassert>
#include <vector>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/model_spec.h"

namespace disttf::bench {
namespace {

// A layer's matrices, filled with small numbers of both signs: zeros could favour the arithmetic,
// and denormals would slow it down.
math::AlignedVector made_up(std::size_t size) {
  math::AlignedVector values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values.data()[i] = 0.01F * (static_cast<float>(i % 17) - 8.0F);
  }
  return values;
}

}  // namespace

struct StepProducts::Impl {
  struct Layer {
    std::size_t rows;                   // of the batch, or their positions for a convolution
    std::size_t inputs;                 // of each sum
    std::size_t units;                  // of a row
    math::AlignedVector input;          // [rows, inputs]
    math::AlignedVector weights;        // [inputs, units]
    math::AlignedVector output;         // [rows, units]
    math::AlignedVector output_delta;   // [rows, units]
    math::AlignedVector input_delta;    // [rows, inputs]
    math::AlignedVector weights_delta;  // [inputs, units]
  };
  const math::Products& products;
  std::vector<Layer> layers;
  math::AlignedVector scratch;
};

StepProducts::StepProducts(const math::ModelSpec& spec, std::size_t batch, math::Isa isa,
                           math::ComputeDtype dtype)
    : impl_(new Impl{.products = math::products(isa, dtype),
                     .layers = {},
                     .scratch = math::AlignedVector(math::kProductScratchFloats)}) {
  assert(batch > 0);
  for (const math::PlacedLayer& placed : math::make_layers(spec)) {
    const std::size_t inputs = placed.layer->gradient_rows();
    if (inputs == 0) {
      continue;
    }
    const std::size_t units = placed.layer->variables()[0].shape.back();
    // For a convolution this is the number of positions in the batch: each has one row of the
    // matrix.
    const std::size_t rows = batch * placed.layer->multiply_adds() / (inputs * units);
    impl_->layers.push_back({.rows = rows,
                             .inputs = inputs,
                             .units = units,
                             .input = made_up(rows * inputs),
                             .weights = made_up(inputs * units),
                             .output = math::AlignedVector(rows * units),
                             .output_delta = made_up(rows * units),
                             .input_delta = math::AlignedVector(rows * inputs),
                             .weights_delta = math::AlignedVector(inputs * units)});
  }
}

StepProducts::~StepProducts() = default;

void StepProducts::run() noexcept {
  const math::Products& products = impl_->products;
  float* scratch = impl_->scratch.data();
  std::vector<Impl::Layer>& layers = impl_->layers;
  for (Impl::Layer& layer : layers) {
    products.product(layer.input.data(), layer.weights.data(), layer.output.data(),
                     {.rows = layer.rows, .columns = layer.units, .depth = layer.inputs}, nullptr,
                     scratch);
  }
  for (std::size_t i = layers.size(); i-- > 0;) {
    Impl::Layer& layer = layers[i];
    products.product_at(layer.input.data(), layer.output_delta.data(), layer.weights_delta.data(),
                        {.rows = layer.inputs, .columns = layer.units, .depth = layer.rows},
                        scratch);
    // No training step needs the gradient by the pixels.
    if (i > 0) {
      products.product_bt(layer.output_delta.data(), layer.weights.data(), layer.input_delta.data(),
                          {.rows = layer.rows, .columns = layer.inputs, .depth = layer.units},
                          scratch);
    }
  }
}

double StepProducts::operations() const noexcept {
  double sum = 0.0;
  for (const Impl::Layer& layer : impl_->layers) {
    const bool is_first = &layer == &impl_->layers.front();
    const double product = 2.0 * static_cast<double>(layer.rows) *
                           static_cast<double>(layer.inputs) * static_cast<double>(layer.units);
    sum += product * (is_first ? 2.0 : 3.0);
  }
  return sum;
}

}  // namespace disttf::bench
