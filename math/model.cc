#include "math/model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/layers.h"
#include "math/random.h"

namespace disttf::math {
namespace {

// exp(-t) for 0 <= t <= 2, within 1e-14: (exp(-t/8))^8 by the first terms of the series. From + and
// * alone, so that every machine draws the same initial values.
double exp_of_minus(double t) noexcept {
  const double x = -t / 8.0;
  double sum = 1.0;
  for (int k = 12; k >= 1; --k) {  // |x| <= 1/4: the first term left out is below 3e-18
    sum = 1.0 + sum * x / k;
  }
  const double square = sum * sum;
  const double fourth = square * square;
  return fourth * fourth;
}

// A draw from the standard normal distribution cut at two standard deviations, by rejection: a
// uniform z in [-2, 2) is kept with probability exp(-z^2/2), three times in five. Attempt k of
// element i draws with the index k * 2^40 + i: no variable has 2^40 elements.
double truncated_normal(std::uint64_t seed, std::uint64_t variable,
                        std::uint64_t element) noexcept {
  constexpr double kUnit = 1.0 / 4294967296.0;  // 2^-32
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t bits =
        random_bits(seed, static_cast<std::uint32_t>(Purpose::kInitialValues), variable,
                    (attempt << 40U) + element);
    const double z = 4.0 * kUnit * static_cast<double>(bits >> 32U) - 2.0;
    const double keep = kUnit * static_cast<double>(bits & 0xFFFFFFFFU);
    if (keep < exp_of_minus(z * z / 2.0)) {
      return z;
    }
  }
}

// Whether `label` is the first of the largest logits. False where the label's is not a number or
// is compared with one that is not.
bool is_correct(std::span<const float> logits, std::size_t label) noexcept {
  for (std::size_t j = 0; j < label; ++j) {
    if (!(logits[j] < logits[label])) {
      return false;
    }
  }
  for (std::size_t j = label; j < logits.size(); ++j) {
    if (!(logits[j] <= logits[label])) {
      return false;
    }
  }
  return true;
}

struct Layer {
  LayerShape shape;
  std::size_t weights = 0;  // offsets in the flat vector
  std::size_t bias = 0;
  AlignedVector output;  // [max_batch, units]; of the last layer: logits, then their gradient
  AlignedVector delta;   // [max_batch, units], the loss by the output before relu; not of the last
};

}  // namespace

struct Model::Impl {
  Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype);

  // Makes row `row` of `set` the batch's row `position`.
  void load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept;
  // The first `rows` rows of the batch -> logits.
  void forward(const float* parameters, std::size_t rows) noexcept;
  // The loss by the logits, which lies in their place -> the loss by every parameter.
  void backward(const float* parameters, std::size_t rows, float* gradient) noexcept;
  // Sets what lies between the variables to zero.
  void clear_padding(std::span<float> gradient) const noexcept;
  // Logits -> their gradient times `scale`, in place. Returns the sum of the rows' losses.
  double cross_entropy(std::size_t rows, float scale) noexcept;

  ModelSpec spec;
  ParameterLayout layout;
  const Kernels& kernels;
  const Products& products;
  std::size_t max_batch;
  std::vector<Layer> layers;
  AlignedVector batch;               // [max_batch, inputs]: x
  std::size_t batch_rows = 0;        // of them are filled; 0: none, or by evaluate()
  std::vector<std::uint8_t> labels;  // [max_batch]
  AlignedVector scratch;             // for the products
};

Model::Impl::Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype)
    : spec(std::move(model_spec)),
      layout(layout_of(spec)),
      kernels(math::kernels(isa)),
      products(math::products(isa, dtype)),
      max_batch(rows),
      batch(rows * spec.inputs),
      labels(rows),
      scratch(kProductScratchFloats) {
  assert(max_batch > 0);
  for (const LayerShape& shape : layer_shapes(spec)) {
    const std::size_t first_variable = 2 * layers.size();
    layers.push_back({.shape = shape,
                      .weights = layout.variables()[first_variable].offset,
                      .bias = layout.variables()[first_variable + 1].offset,
                      .output = AlignedVector(rows * shape.units),
                      .delta = AlignedVector(rows * shape.units)});
  }
  layers.back().delta = AlignedVector();
}

void Model::Impl::load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept {
  assert(row < set.rows());
  assert(set.labels[row] < spec.classes);
  kernels.pixels_to_floats(set.images.data() + row * spec.inputs,
                           batch.data() + position * spec.inputs, spec.inputs);
  labels[position] = set.labels[row];
}

void Model::Impl::forward(const float* parameters, std::size_t rows) noexcept {
  const float* input = batch.data();
  for (Layer& layer : layers) {
    const LayerShape shape = layer.shape;
    float* output = layer.output.data();
    products.product(input, parameters + layer.weights, output,
                     {.rows = rows, .columns = shape.units, .depth = shape.inputs},
                     parameters + layer.bias, scratch.data());
    if (&layer != &layers.back()) {
      kernels.relu(output, rows * shape.units);
    }
    input = output;
  }
}

void Model::Impl::backward(const float* parameters, std::size_t rows, float* gradient) noexcept {
  const float* delta = layers.back().output.data();
  for (std::size_t i = layers.size(); i-- > 0;) {
    const Layer& layer = layers[i];
    const LayerShape shape = layer.shape;
    const float* input = i == 0 ? batch.data() : layers[i - 1].output.data();
    kernels.column_sums(delta, gradient + layer.bias, rows, shape.units);
    products.product_at(input, delta, gradient + layer.weights,
                        {.rows = shape.inputs, .columns = shape.units, .depth = rows},
                        scratch.data());
    if (i == 0) {
      break;  // nobody needs the gradient by the pixels
    }
    AlignedVector& below = layers[i - 1].delta;
    const std::size_t values = rows * shape.inputs;
    products.product_bt(delta, parameters + layer.weights, below.data(),
                        {.rows = rows, .columns = shape.inputs, .depth = shape.units},
                        scratch.data());
    kernels.relu_backward(input, below.data(), values);
    delta = below.data();
  }
}

void Model::Impl::clear_padding(std::span<float> gradient) const noexcept {
  for (const Variable& variable : layout.variables()) {
    const std::size_t end = variable.offset + variable.size;
    const std::size_t padding = -end % kVariableAlignmentFloats;
    std::ranges::fill(gradient.subspan(end, padding), 0.0F);
  }
}

double Model::Impl::cross_entropy(std::size_t rows, float scale) noexcept {
  return kernels.softmax_cross_entropy(layers.back().output.data(), labels.data(), rows,
                                       spec.classes, scale);
}

Model::Model(ModelSpec spec, std::size_t max_batch, Isa isa, ComputeDtype dtype)
    : impl_(std::make_unique<Impl>(std::move(spec), max_batch, isa, dtype)) {}

Model::~Model() = default;

const ParameterLayout& Model::layout() const noexcept { return impl_->layout; }

void Model::initialize(std::uint64_t seed, std::span<float> parameters) const {
  assert(parameters.size() == impl_->layout.size());
  std::ranges::fill(parameters, 0.0F);
  if (impl_->spec.kind == ModelKind::kSoftmax) {
    return;
  }
  for (std::size_t i = 0; i < impl_->layers.size(); ++i) {
    const Layer& layer = impl_->layers[i];
    const double deviation = 1.0 / std::sqrt(static_cast<double>(layer.shape.inputs));
    const std::size_t variable = 2 * i;
    const std::size_t size = layer.shape.inputs * layer.shape.units;
    for (std::size_t element = 0; element < size; ++element) {
      const double z = truncated_normal(seed, variable, element);
      parameters[layer.weights + element] = static_cast<float>(z * deviation);
    }
  }
}

float Model::gradient(std::span<const float> parameters, const ImageSet& set,
                      std::span<const std::uint32_t> rows, std::span<float> gradient) {
  load(set, rows);
  return gradient_of_batch(parameters, gradient);
}

void Model::load(const ImageSet& set, std::span<const std::uint32_t> rows) {
  assert(!rows.empty() && rows.size() <= impl_->max_batch);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    impl_->load_row(set, rows[i], i);
  }
  impl_->batch_rows = rows.size();
}

float Model::gradient_of_batch(std::span<const float> parameters, std::span<float> gradient) {
  Impl& model = *impl_;
  const std::size_t count = model.batch_rows;
  assert(count > 0);
  assert(parameters.size() == model.layout.size());
  assert(gradient.size() == model.layout.size());
  model.forward(parameters.data(), count);
  const double loss = model.cross_entropy(count, 1.0F / static_cast<float>(count));
  model.backward(parameters.data(), count, gradient.data());
  model.clear_padding(gradient);
  return static_cast<float>(loss / static_cast<double>(count));
}

Evaluation Model::evaluate(std::span<const float> parameters, const ImageSet& set) {
  Impl& model = *impl_;
  assert(parameters.size() == model.layout.size());
  const std::size_t classes = model.spec.classes;
  Evaluation result{.rows = set.rows()};
  model.batch_rows = 0;
  double loss = 0.0;
  for (std::size_t begin = 0; begin < set.rows(); begin += model.max_batch) {
    const std::size_t count = std::min(model.max_batch, set.rows() - begin);
    for (std::size_t i = 0; i < count; ++i) {
      model.load_row(set, begin + i, i);
    }
    model.forward(parameters.data(), count);
    const std::span<const float> logits = model.layers.back().output.span();
    for (std::size_t i = 0; i < count; ++i) {
      if (is_correct(logits.subspan(i * classes, classes), model.labels[i])) {
        ++result.correct;
      }
    }
    loss += model.cross_entropy(count, 1.0F /* the gradient is thrown away */);
  }
  result.cross_entropy = result.rows == 0 ? 0.0 : loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace disttf::math
