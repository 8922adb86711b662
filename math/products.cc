#include "math/products.h"

#include <cassert>
#include <vector>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/layers.h"

namespace disttf::math {
namespace {

// A layer's matrices, filled with small numbers of both signs: zeros could flatter the arithmetic
// and denormals slow it down.
AlignedVector made_up(std::size_t size) {
  AlignedVector values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values.data()[i] = 0.01F * (static_cast<float>(i % 17) - 8.0F);
  }
  return values;
}

}  // namespace

struct StepProducts::Impl {
  struct Layer {
    LayerShape shape;
    AlignedVector input;          // [batch, inputs]
    AlignedVector weights;        // [inputs, units]
    AlignedVector output;         // [batch, units]
    AlignedVector output_delta;   // [batch, units]
    AlignedVector input_delta;    // [batch, inputs]
    AlignedVector weights_delta;  // [inputs, units]
  };
  const Products& products;
  std::size_t batch;
  std::vector<Layer> layers;
  AlignedVector scratch;
};

StepProducts::StepProducts(const ModelSpec& spec, std::size_t batch, Isa isa, ComputeDtype dtype)
    : impl_(new Impl{.products = products(isa, dtype),
                     .batch = batch,
                     .layers = {},
                     .scratch = AlignedVector(kProductScratchFloats)}) {
  assert(batch > 0);
  for (const LayerShape& shape : layer_shapes(spec)) {
    impl_->layers.push_back({.shape = shape,
                             .input = made_up(batch * shape.inputs),
                             .weights = made_up(shape.inputs * shape.units),
                             .output = AlignedVector(batch * shape.units),
                             .output_delta = made_up(batch * shape.units),
                             .input_delta = AlignedVector(batch * shape.inputs),
                             .weights_delta = AlignedVector(shape.inputs * shape.units)});
  }
}

StepProducts::~StepProducts() = default;

void StepProducts::run() noexcept {
  const Products& products = impl_->products;
  const std::size_t batch = impl_->batch;
  float* scratch = impl_->scratch.data();
  std::vector<Impl::Layer>& layers = impl_->layers;
  for (Impl::Layer& layer : layers) {
    products.product(layer.input.data(), layer.weights.data(), layer.output.data(),
                     {.rows = batch, .columns = layer.shape.units, .depth = layer.shape.inputs},
                     nullptr, scratch);
  }
  for (std::size_t i = layers.size(); i-- > 0;) {
    Impl::Layer& layer = layers[i];
    products.product_at(layer.input.data(), layer.output_delta.data(), layer.weights_delta.data(),
                        {.rows = layer.shape.inputs, .columns = layer.shape.units, .depth = batch},
                        scratch);
    if (i > 0) {
      products.product_bt(
          layer.output_delta.data(), layer.weights.data(), layer.input_delta.data(),
          {.rows = batch, .columns = layer.shape.inputs, .depth = layer.shape.units}, scratch);
    }
  }
}

double StepProducts::operations() const noexcept {
  double sum = 0.0;
  for (const Impl::Layer& layer : impl_->layers) {
    const bool is_first = &layer == &impl_->layers.front();
    const double product = 2.0 * static_cast<double>(impl_->batch) *
                           static_cast<double>(layer.shape.inputs) *
                           static_cast<double>(layer.shape.units);
    sum += product * (is_first ? 2.0 : 3.0);
  }
  return sum;
}

}  // namespace disttf::math
