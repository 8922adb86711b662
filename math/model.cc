#include "math/model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <utility>

#include "math/aligned.h"
#include "math/kernels_table.h"
#include "math/layers/layer.h"
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

// The first of the largest logits; their number where one is not a number.
std::size_t judged_class(std::span<const float> logits) noexcept {
  std::size_t best = 0;
  for (std::size_t each = 0; each < logits.size(); ++each) {
    if (std::isnan(logits[each])) {
      return logits.size();
    }
    best = logits[each] > logits[best] ? each : best;
  }
  return best;
}

// Every product computes whole panels of so many rows where several threads share one: the generic
// set's bits of a row depend on whether it is in one.
constexpr std::size_t kPanelRows = 4;
// Of a gradient's matrix: below so many multiplications one thread computes it alone.
constexpr std::size_t kLeastWork = 1U << 18U;
// Of a gradient that is handed on while it is computed. Each piece of a wide layer packs the same
// matrix anew, so they are few; whole tiles of a product, however wide.
constexpr std::size_t kMostPieces = 4;
constexpr std::size_t kLeastPieceBytes = std::size_t{64} * 1024;
constexpr std::size_t kPieceRows = 48;
// Of layers that do not care how many rows they are given: what a few rows take, so that they find
// it in the second-level cache.
constexpr std::size_t kBlockFloats = std::size_t{64} * 1024;

// Of the loss by a stage's first variable, some rows.
struct GradientPart {
  std::size_t stage = 0;
  Rows rows;
};
// Parts that are computed together.
using Round = std::vector<GradientPart>;

// A layer that computes, with its numbers.
struct Stage {
  std::unique_ptr<const Layer> layer;
  std::uint32_t place = 0;           // among all layers of the model
  std::vector<std::size_t> offsets;  // of its variables in the flat vector
  AlignedVector output;    // [max_batch, output]; none where it is in the place of the input's
  AlignedVector delta;     // the loss by that; none where the output's takes its place
  AlignedVector kept;      // [max_batch, kept_floats()]
  AlignedVector prepared;  // prepared_floats()
};

// Stages [begin, end) that go over some rows together, `block` at a time.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t block = 0;
};

}  // namespace

struct Model::Impl {
  Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype, std::size_t threads);

  // Makes row `row` of `set` the batch's row `position`.
  void load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept;
  // Rows of the batch -> their logits. `trains`: layers draw random numbers.
  void forward(const float* parameters, Rows rows, std::size_t member, bool trains) noexcept;
  // Logits -> their gradient times `scale`, where the last layer's delta lies. Returns the sum of
  // the rows' losses.
  double cross_entropy(Rows rows, float scale, float smoothing) noexcept;
  // The loss by the rows' logits -> by what each layer gives for them.
  void propagate(const float* parameters, Rows rows, std::size_t member) noexcept;
  // From both, of all rows of the batch: the loss by a stage's variables.
  void differentiate(const float* parameters, const GradientPart& part, float* gradient,
                     std::size_t member) noexcept;
  // What the way back needs of the parameters in another order.
  void prepare(const float* parameters) noexcept;
  // What stage `index` computes with; its rows are to be filled in.
  [[nodiscard]] LayerPass pass_of(std::size_t index, const float* parameters,
                                  std::size_t member) noexcept;
  [[nodiscard]] std::size_t classes() const noexcept { return spec.classes; }

  void make_stages(std::size_t rows);
  void plan_segments();
  void plan_rounds();
  // Of a stage's gradient `rows`, shared by all threads.
  void add_parts(Round& round, std::size_t index, Rows rows) const;
  // Sets what lies between the variables to zero.
  void clear_padding(std::span<float> gradient) const noexcept;

  ModelSpec spec;
  ParameterLayout layout;
  const Kernels& kernels;
  const Products& products;
  std::size_t max_batch;
  std::vector<Stage> stages;
  std::vector<float*> outputs;  // by stage, where it lies
  std::vector<float*> deltas;
  std::vector<Segment> segments;
  bool takes_pixels = false;         // the first layer does
  std::vector<std::uint8_t> pixels;  // [max_batch, inputs]: x * 255, where it does; else empty
  AlignedVector batch;               // [max_batch, inputs]: x, where it does not; else empty
  std::size_t batch_rows = 0;        // of them are filled; 0: none, or by evaluate()
  std::vector<std::uint8_t> labels;  // [max_batch]
  ThreadPool pool;
  std::vector<AlignedVector> scratch;  // by member
  std::vector<LayerDraws> draws;       // by stage
  // One round after the other, from the last stage to the first: all in one; or the first one's in
  // several pieces.
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
      labels(rows),
      pool(threads),
      losses(threads) {
  assert(max_batch > 0);
  make_stages(rows);
  takes_pixels = stages.front().layer->takes_pixels(products);
  pixels.resize(takes_pixels ? rows * spec.input.size() : 0);
  batch = AlignedVector(takes_pixels ? 0 : rows * spec.input.size());
  std::size_t most = 0;
  for (const Stage& stage : stages) {
    most = std::max(most, stage.layer->scratch_floats());
  }
  for (std::size_t member = 0; member < threads; ++member) {
    scratch.emplace_back(most);
  }
  plan_segments();
  plan_rounds();
}

void Model::Impl::make_stages(std::size_t rows) {
  std::size_t variable = 0;
  std::uint32_t place = 0;
  for (PlacedLayer& placed : make_layers(spec)) {
    const Layer& layer = *placed.layer;
    ++place;
    if (!layer.computes()) {
      continue;
    }
    Stage& stage = stages.emplace_back();
    stage.place = place;
    for (std::size_t i = 0; i < layer.variables().size(); ++i) {
      stage.offsets.push_back(layout.variables()[variable++].offset);
    }
    const bool is_first = stages.size() == 1;
    const bool has_delta = !layer.in_place() || is_first;
    const bool has_output = has_delta || stages[stages.size() - 2].layer->needs_output();
    stage.output = AlignedVector(has_output ? rows * layer.output().size() : 0);
    stage.delta = AlignedVector(has_delta ? rows * layer.output().size() : 0);
    stage.kept = AlignedVector(rows * layer.kept_floats());
    stage.prepared = AlignedVector(is_first ? 0 : layer.prepared_floats());
    outputs.push_back(stage.output.size() == 0 ? outputs.back() : stage.output.data());
    deltas.push_back(stage.delta.size() == 0 ? deltas.back() : stage.delta.data());
    stage.layer = std::move(placed.layer);
  }
  draws.resize(stages.size());
  if (stages.back().layer->needs_output()) {
    return;
  }
  // The gradient by the logits is made where these are.
  float* const logits = outputs.back();
  const float* const unused = deltas.back();
  for (std::size_t i = stages.size(); i-- > 0 && deltas[i] == unused;) {
    deltas[i] = logits;
    stages[i].delta = AlignedVector();
  }
}

void Model::Impl::plan_segments() {
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const Layer& layer = *stages[i].layer;
    const std::size_t floats =
        layer.input().size() + layer.output().size() + layer.kept_floats() + 1;
    const std::size_t block = std::clamp(kBlockFloats / floats, std::size_t{1}, max_batch);
    if (layer.wants_many_rows()) {
      segments.push_back({.begin = i, .end = i + 1, .block = max_batch});
    } else if (segments.empty() || stages[segments.back().begin].layer->wants_many_rows()) {
      segments.push_back({.begin = i, .end = i + 1, .block = block});
    } else {
      segments.back().end = i + 1;
      segments.back().block = std::min(segments.back().block, block);
    }
  }
}

void Model::Impl::plan_rounds() {
  Round& all = at_once.emplace_back();
  for (std::size_t i = stages.size(); i-- > 0;) {
    if (i == 0 && !all.empty()) {
      pieces.push_back(all);
    }
    add_parts(all, i, {0, stages[i].layer->gradient_rows()});
  }
  const std::size_t rows = stages.front().layer->gradient_rows();
  if (rows == 0) {
    return;
  }
  const std::size_t bytes = layout.variables().front().size * sizeof(float);
  const EvenParts cuts(rows, kPieceRows,
                       std::clamp(bytes / kLeastPieceBytes, std::size_t{1}, kMostPieces));
  for (std::size_t piece = 0; piece < cuts.count(); ++piece) {
    add_parts(pieces.emplace_back(), 0, {cuts.begin(piece), cuts.end(piece)});
  }
}

void Model::Impl::add_parts(Round& round, std::size_t index, Rows rows) const {
  const Layer& layer = *stages[index].layer;
  const std::size_t all = layer.gradient_rows();
  if (all == 0) {
    return;
  }
  const bool is_small = max_batch * layer.multiply_adds() / all * rows.count() < kLeastWork;
  const EvenParts parts(rows.count(), kPanelRows, is_small ? 1 : pool.size());
  for (std::size_t part = 0; part < parts.count(); ++part) {
    round.push_back({index, {rows.begin + parts.begin(part), rows.begin + parts.end(part)}});
  }
}

void Model::Impl::load_row(const ImageSet& set, std::size_t row, std::size_t position) noexcept {
  assert(row < set.rows());
  assert(set.labels[row] < spec.classes);
  const std::size_t inputs = spec.input.size();
  const std::uint8_t* image = set.images.data() + row * inputs;
  if (takes_pixels) {
    std::copy_n(image, inputs, pixels.data() + position * inputs);
  } else {
    kernels.pixels_to_floats(image, batch.data() + position * inputs, inputs);
  }
  labels[position] = set.labels[row];
}

LayerPass Model::Impl::pass_of(std::size_t index, const float* parameters,
                               std::size_t member) noexcept {
  Stage& stage = stages[index];
  LayerPass pass{.kernels = &kernels,
                 .products = &products,
                 .input = index == 0 ? batch.data() : outputs[index - 1],
                 .pixels = index == 0 && takes_pixels ? pixels.data() : nullptr,
                 .output = outputs[index],
                 .output_delta = deltas[index],
                 .input_delta = index == 0 ? nullptr : deltas[index - 1],
                 .prepared = stage.prepared.data(),
                 .kept = stage.kept.data(),
                 .scratch = scratch[member].data()};
  for (std::size_t i = 0; i < stage.offsets.size(); ++i) {
    pass.variables[i] = parameters + stage.offsets[i];
  }
  return pass;
}

void Model::Impl::prepare(const float* parameters) noexcept {
  for (std::size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].prepared.size() != 0) {
      stages[i].layer->prepare(pass_of(i, parameters, 0), stages[i].prepared.data());
    }
  }
}

void Model::Impl::forward(const float* parameters, Rows rows, std::size_t member,
                          bool trains) noexcept {
  for (const Segment& segment : segments) {
    for (Rows block{rows.begin, rows.begin}; block.end < rows.end; block.begin = block.end) {
      block.end = std::min(block.begin + segment.block, rows.end);
      for (std::size_t i = segment.begin; i < segment.end; ++i) {
        LayerPass pass = pass_of(i, parameters, member);
        pass.rows = block;
        pass.draws = trains ? &draws[i] : nullptr;
        // The batch itself, and what a layer needs of its output, are not overwritten.
        if (stages[i].layer->in_place() && stages[i].output.size() != 0) {
          const std::size_t size = stages[i].layer->output().size();
          std::copy_n(pass.input + block.begin * size, block.count() * size,
                      pass.output + block.begin * size);
        }
        stages[i].layer->forward(pass);
      }
    }
  }
}

double Model::Impl::cross_entropy(Rows rows, float scale, float smoothing) noexcept {
  const float* const logits = outputs.back() + rows.begin * classes();
  float* const delta = deltas.back() + rows.begin * classes();
  if (delta != logits) {
    std::copy_n(logits, rows.count() * classes(), delta);
  }
  return kernels.softmax_cross_entropy(delta, labels.data() + rows.begin, rows.count(), classes(),
                                       scale, smoothing);
}

void Model::Impl::propagate(const float* parameters, Rows rows, std::size_t member) noexcept {
  for (std::size_t number = segments.size(); number-- > 0;) {
    const Segment& segment = segments[number];
    // Not to the first layer's input: nobody needs the gradient by the pixels.
    const std::size_t last = std::max(segment.begin, std::size_t{1});
    for (Rows block{rows.begin, rows.begin}; block.end < rows.end; block.begin = block.end) {
      block.end = std::min(block.begin + segment.block, rows.end);
      for (std::size_t i = segment.end; i-- > last;) {
        LayerPass pass = pass_of(i, parameters, member);
        pass.rows = block;
        stages[i].layer->backward(pass);
      }
    }
  }
}

void Model::Impl::differentiate(const float* parameters, const GradientPart& part, float* gradient,
                                std::size_t member) noexcept {
  const Stage& stage = stages[part.stage];
  LayerPass pass = pass_of(part.stage, parameters, member);
  pass.rows = {0, batch_rows};
  std::array<float*, kMostLayerVariables> gradients{};
  for (std::size_t i = 0; i < stage.offsets.size(); ++i) {
    gradients[i] = gradient + stage.offsets[i];
  }
  stage.layer->gradient(pass, part.rows, std::span(gradients).first(stage.offsets.size()));
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
  std::size_t variable = 0;
  for (const Stage& stage : impl_->stages) {
    for (const LayerVariable& each : stage.layer->variables()) {
      const Variable& place = impl_->layout.variables()[variable];
      for (std::size_t element = 0; each.deviation != 0 && element < place.size; ++element) {
        const double z = truncated_normal(seed, variable, element);
        parameters[place.offset + element] = static_cast<float>(z * each.deviation);
      }
      ++variable;
    }
  }
}

float Model::gradient(std::span<const float> parameters, const ImageSet& set,
                      std::span<const std::uint32_t> rows, std::span<float> gradient) {
  load(set, rows);
  return gradient_of_batch(parameters, gradient);
}

void Model::load(const ImageSet& set, std::span<const std::uint32_t> rows, const Place& place) {
  assert(!rows.empty() && rows.size() <= impl_->max_batch);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    impl_->load_row(set, rows[i], i);
  }
  impl_->batch_rows = rows.size();
  for (std::size_t i = 0; i < impl_->stages.size(); ++i) {
    impl_->draws[i] = {.seed = place.seed,
                       .step = place.step,
                       .first = place.first,
                       .layer = impl_->stages[i].place};
  }
}

float Model::gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                               const OnReady& on_ready) {
  Impl& model = *impl_;
  const std::size_t count = model.batch_rows;
  const float scale = 1.0F / static_cast<float>(count);
  assert(count > 0);
  assert(parameters.size() == model.layout.size());
  assert(gradient.size() == model.layout.size());
  model.prepare(parameters.data());
  const EvenParts parts(count, kPanelRows, model.pool.size());
  model.pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
    const Rows rows{parts.begin(number), parts.end(number)};
    model.forward(parameters.data(), rows, member, /*trains=*/true);
    model.losses[number] = model.cross_entropy(rows, scale, model.spec.label_smoothing);
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
      model.differentiate(parameters.data(), round[number], gradient.data(), member);
    });
    const GradientPart& last = round.back();
    const std::size_t rows_of_first = model.stages.front().layer->gradient_rows();
    if (last.stage == 0 && last.rows.end < rows_of_first) {
      on_ready(loss, last.rows.end * (model.layout.variables().front().size / rows_of_first));
    }
  }
  return loss;
}

Evaluation Model::evaluate(std::span<const float> parameters, const ImageSet& set) {
  Impl& model = *impl_;
  assert(parameters.size() == model.layout.size());
  const std::size_t classes = model.spec.classes;
  Evaluation result{.rows = set.rows(),
                    .classes = classes,
                    .confusion = std::vector<std::uint64_t>(classes * classes)};
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
      model.forward(parameters.data(), rows, member, /*trains=*/false);
    });
    const std::span<const float> logits(model.outputs.back(), count * classes);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t judged = judged_class(logits.subspan(i * classes, classes));
      result.correct += judged == model.labels[i] ? 1U : 0U;
      if (judged < classes) {
        ++result.confusion[model.labels[i] * classes + judged];
      }
    }
    loss += model.cross_entropy({0, count}, 1.0F /* the gradient is thrown away */, 0.0F);
  }
  result.cross_entropy = result.rows == 0 ? 0.0 : loss / static_cast<double>(result.rows);
  return result;
}

}  // namespace disttf::math
