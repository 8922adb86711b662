#include "math/model.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/layers.h"
#include "math/random.h"
#include "math/thread_pool.h"

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

// Rows of a matrix: [begin, end).
struct Rows {
  std::size_t begin = 0;
  std::size_t end = 0;
  [[nodiscard]] std::size_t count() const noexcept { return end - begin; }
};

// Every product computes whole panels of so many rows where several threads share one: the generic
// set's bits of a row depend on whether it is in one.
constexpr std::size_t kPanelRows = 4;
// Of a gradient's matrix: below so many multiplications one thread computes it alone.
constexpr std::size_t kLeastWork = 1U << 18U;
// Of a gradient that is handed on while it is computed. Each piece of a wide layer packs the same
// matrix anew, so they are few; whole tiles of a product, however wide.
constexpr std::size_t kMostPieces = 4;
constexpr std::size_t kLeastPieceBytes = std::size_t{64} * 1024;
constexpr std::size_t kPieceInputs = 48;

// Of a layer's weights, those whose input is one of `inputs`.
struct GradientPart {
  std::size_t layer = 0;
  Rows inputs;
};
// Parts that are computed together.
using Round = std::vector<GradientPart>;

struct Layer {
  LayerShape shape;
  std::size_t weights = 0;  // offsets in the flat vector
  std::size_t bias = 0;
  AlignedVector output;  // [max_batch, units]; of the last layer: logits, then their gradient
  AlignedVector delta;   // [max_batch, units], the loss by the output before relu; not of the last
};

}  // namespace

struct Model::Impl {
  Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype, std::size_t threads);

  // Makes row `row` of `set` the batch's row `position`.
  void load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept;
  // Rows of the batch -> their logits.
  void forward(const float* parameters, Rows rows, std::size_t member) noexcept;
  // Logits -> their gradient times `scale`, in place. Returns the sum of the rows' losses.
  double cross_entropy(Rows rows, float scale) noexcept;
  // The loss by the rows' logits, which lies in their place -> by what each layer but the last
  // computes for them.
  void propagate(const float* parameters, Rows rows, std::size_t member) noexcept;
  // From both, of all rows of the batch: the loss by a layer's parameters; of its weights those
  // whose input is one of `inputs`, and the biases with the first.
  void differentiate(std::size_t layer, Rows inputs, float* gradient, std::size_t member) noexcept;
  [[nodiscard]] const float* input_of(std::size_t layer) const noexcept {
    return layer == 0 ? batch.data() : layers[layer - 1].output.data();
  }
  [[nodiscard]] const float* delta_of(std::size_t layer) const noexcept {
    return layer + 1 == layers.size() ? layers[layer].output.data() : layers[layer].delta.data();
  }
  void plan_rounds();
  // Of a layer's weights those of `inputs`, shared by all threads.
  void add_parts(Round& round, std::size_t layer, Rows inputs) const;
  // Sets what lies between the variables to zero.
  void clear_padding(std::span<float> gradient) const noexcept;

  ModelSpec spec;
  ParameterLayout layout;
  const Kernels& kernels;
  const Products& products;
  std::size_t max_batch;
  std::vector<Layer> layers;
  bool takes_pixels;                 // the products of the first layer do
  std::vector<std::uint8_t> pixels;  // [max_batch, inputs]: x * 255, where they do; else empty
  AlignedVector batch;               // [max_batch, inputs]: x, where they do not; else empty
  std::size_t batch_rows = 0;        // of them are filled; 0: none, or by evaluate()
  std::vector<std::uint8_t> labels;  // [max_batch]
  ThreadPool pool;
  std::vector<AlignedVector> scratch;  // for the products, by member
  // One round after the other, from the last layer to the first: all in one; or the first layer's
  // in several pieces of its inputs.
  std::vector<Round> at_once;
  std::vector<Round> pieces;
  std::vector<double> losses;  // by part of a batch
};

Model::Impl::Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype,
                  std::size_t threads)
    : spec(std::move(model_spec)),
      layout(layout_of(spec)),
      kernels(math::kernels(isa)),
      products(math::products(isa, dtype)),
      max_batch(rows),
      takes_pixels(products.product_of_pixels != nullptr),
      pixels(takes_pixels ? rows * spec.inputs : 0),
      batch(takes_pixels ? 0 : rows * spec.inputs),
      labels(rows),
      pool(threads),
      losses(threads) {
  assert(max_batch > 0);
  for (std::size_t member = 0; member < threads; ++member) {
    scratch.emplace_back(kProductScratchFloats);
  }
  for (const LayerShape& shape : layer_shapes(spec)) {
    const std::size_t first_variable = 2 * layers.size();
    layers.push_back({.shape = shape,
                      .weights = layout.variables()[first_variable].offset,
                      .bias = layout.variables()[first_variable + 1].offset,
                      .output = AlignedVector(rows * shape.units),
                      .delta = AlignedVector(rows * shape.units)});
  }
  layers.back().delta = AlignedVector();
  plan_rounds();
}

void Model::Impl::plan_rounds() {
  Round& all = at_once.emplace_back();
  for (std::size_t layer = layers.size(); layer-- > 0;) {
    if (layer == 0 && !all.empty()) {
      pieces.push_back(all);
    }
    add_parts(all, layer, {0, layers[layer].shape.inputs});
  }
  const LayerShape first = layers.front().shape;
  const std::size_t most = first.inputs * first.units * sizeof(float) / kLeastPieceBytes;
  const EvenParts cuts(first.inputs, kPieceInputs, std::clamp(most, std::size_t{1}, kMostPieces));
  for (std::size_t piece = 0; piece < cuts.count(); ++piece) {
    add_parts(pieces.emplace_back(), 0, {cuts.begin(piece), cuts.end(piece)});
  }
}

void Model::Impl::add_parts(Round& round, std::size_t layer, Rows inputs) const {
  const bool is_small = max_batch * inputs.count() * layers[layer].shape.units < kLeastWork;
  const EvenParts parts(inputs.count(), kPanelRows, is_small ? 1 : pool.size());
  for (std::size_t part = 0; part < parts.count(); ++part) {
    round.push_back({layer, {inputs.begin + parts.begin(part), inputs.begin + parts.end(part)}});
  }
}

void Model::Impl::load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept {
  assert(row < set.rows());
  assert(set.labels[row] < spec.classes);
  const std::uint8_t* image = set.images.data() + row * spec.inputs;
  if (takes_pixels) {
    std::copy_n(image, spec.inputs, pixels.data() + position * spec.inputs);
  } else {
    kernels.pixels_to_floats(image, batch.data() + position * spec.inputs, spec.inputs);
  }
  labels[position] = set.labels[row];
}

void Model::Impl::forward(const float* parameters, Rows rows, std::size_t member) noexcept {
  for (std::size_t each = 0; each < layers.size(); ++each) {
    Layer& layer = layers[each];
    const LayerShape shape = layer.shape;
    float* output = layer.output.data() + rows.begin * shape.units;
    const ProductShape product{.rows = rows.count(), .columns = shape.units, .depth = shape.inputs};
    const std::size_t first = rows.begin * shape.inputs;
    if (each == 0 && takes_pixels) {
      products.product_of_pixels(pixels.data() + first, parameters + layer.weights, output, product,
                                 parameters + layer.bias, scratch[member].data());
    } else {
      products.product(input_of(each) + first, parameters + layer.weights, output, product,
                       parameters + layer.bias, scratch[member].data());
    }
    if (&layer != &layers.back()) {
      kernels.relu(output, rows.count() * shape.units);
    }
  }
}

double Model::Impl::cross_entropy(Rows rows, float scale) noexcept {
  return kernels.softmax_cross_entropy(layers.back().output.data() + rows.begin * spec.classes,
                                       labels.data() + rows.begin, rows.count(), spec.classes,
                                       scale);
}

void Model::Impl::propagate(const float* parameters, Rows rows, std::size_t member) noexcept {
  // Not to the first layer's input: nobody needs the gradient by the pixels.
  for (std::size_t each = layers.size(); each-- > 1;) {
    const LayerShape shape = layers[each].shape;
    const std::size_t first = rows.begin * shape.inputs;
    float* below = layers[each - 1].delta.data() + first;
    products.product_bt(delta_of(each) + rows.begin * shape.units,
                        parameters + layers[each].weights, below,
                        {.rows = rows.count(), .columns = shape.inputs, .depth = shape.units},
                        scratch[member].data());
    kernels.relu_backward(input_of(each) + first, below, rows.count() * shape.inputs);
  }
}

void Model::Impl::differentiate(std::size_t layer, Rows inputs, float* gradient,
                                std::size_t member) noexcept {
  const LayerShape shape = layers[layer].shape;
  const float* delta = delta_of(layer);
  if (inputs.begin == 0) {
    kernels.column_sums(delta, gradient + layers[layer].bias, batch_rows, shape.units);
  }
  float* weights = gradient + layers[layer].weights + inputs.begin * shape.units;
  const ProductShape product{.rows = inputs.count(),
                             .columns = shape.units,
                             .depth = batch_rows,
                             .a_stride = shape.inputs};
  if (layer == 0 && takes_pixels) {
    products.product_at_of_pixels(pixels.data() + inputs.begin, delta, weights, product,
                                  scratch[member].data());
  } else {
    products.product_at(input_of(layer) + inputs.begin, delta, weights, product,
                        scratch[member].data());
  }
}

void Model::Impl::clear_padding(std::span<float> gradient) const noexcept {
  for (const Variable& variable : layout.variables()) {
    const std::size_t end = variable.offset + variable.size;
    const std::size_t padding = -end % kVariableAlignmentFloats;
    std::ranges::fill(gradient.subspan(end, padding), 0.0F);
  }
}

Model::Model(ModelSpec spec, std::size_t max_batch, Isa isa, ComputeDtype dtype,
             std::size_t threads)
    : impl_(std::make_unique<Impl>(std::move(spec), max_batch, isa, dtype, threads)) {}

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

float Model::gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                               const OnReady& on_ready) {
  Impl& model = *impl_;
  const std::size_t count = model.batch_rows;
  const float scale = 1.0F / static_cast<float>(count);
  assert(count > 0);
  assert(parameters.size() == model.layout.size());
  assert(gradient.size() == model.layout.size());
  const EvenParts parts(count, kPanelRows, model.pool.size());
  model.pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
    const Rows rows{parts.begin(number), parts.end(number)};
    model.forward(parameters.data(), rows, member);
    model.losses[number] = model.cross_entropy(rows, scale);
    model.propagate(parameters.data(), rows, member);
  });
  double sum = 0;
  for (std::size_t number = 0; number < parts.count(); ++number) {
    sum += model.losses[number];
  }
  const auto loss = static_cast<float>(sum / static_cast<double>(count));
  model.clear_padding(gradient);
  for (const Round& round : on_ready ? model.pieces : model.at_once) {
    model.pool.run(round.size(), [&](std::size_t number, std::size_t member) {
      model.differentiate(round[number].layer, round[number].inputs, gradient.data(), member);
    });
    const GradientPart& last = round.back();
    if (last.layer == 0 && last.inputs.end < model.spec.inputs) {
      on_ready(loss, last.inputs.end * model.layers.front().shape.units);
    }
  }
  return loss;
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
    const EvenParts parts(count, kPanelRows, model.pool.size());
    model.pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
      const Rows rows{parts.begin(number), parts.end(number)};
      for (std::size_t i = rows.begin; i < rows.end; ++i) {
        model.load_row(set, begin + i, i);
      }
      model.forward(parameters.data(), rows, member);
    });
    const std::span<const float> logits = model.layers.back().output.span();
    for (std::size_t i = 0; i < count; ++i) {
      if (is_correct(logits.subspan(i * classes, classes), model.labels[i])) {
        ++result.correct;
      }
    }
    loss += model.cross_entropy({0, count}, 1.0F /* the gradient is thrown away */);
  }
  result.cross_entropy = result.rows == 0 ? 0.0 : loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace disttf::math
