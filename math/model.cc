#include "math/model.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "math/model_impl.h"
#include "math/random.h"

namespace disttf::math {
namespace {

// A gradient's matrix with fewer multiplications than this is computed by one thread.
constexpr std::size_t kLeastWork = 1U << 18U;
// For a gradient that is sent while it is computed. Each piece of a wide layer packs the same
// matrix again, so there are few; they consist of whole tiles of a product, however wide.
constexpr std::size_t kMostPieces = 4;
constexpr std::size_t kLeastPieceBytes = std::size_t{64} * 1024;
constexpr std::size_t kPieceRows = 48;
// Prefetching: how many rows ahead (the first rows are not prefetched), how much of each, and how
// much of an expected batch: it has to fit into the second-level cache together with the rest of a
// step. On a Zen 4 a batch of 100 images takes 16 us without prefetching, 12 us with rows ahead,
// and 3 us if it was expected.
constexpr std::size_t kRowsAhead = 4;
constexpr std::size_t kMostPrefetchedBytes = 4096;
constexpr std::size_t kMostExpectedBytes = std::size_t{256} * 1024;
constexpr std::size_t kLineBytes = 64;
// The target of a prefetch, as in __builtin_prefetch(): the first-level cache, or only the
// second-level one.
constexpr int kFirstCache = 3;
constexpr int kSecondCache = 2;

}  // namespace

Model::Impl::Impl(ModelSpec model_spec, std::size_t rows, Isa isa, ComputeDtype dtype,
                  std::size_t threads)
    : spec(std::move(model_spec)),
      layout(layout_of(spec)),
      kernels(math::kernels(isa)),
      products(math::products(isa, dtype)),
      max_batch(rows),
      plan(make_plan(spec, layout, rows)),
      labels(of_numbers() ? 0 : rows),
      targets(of_numbers() ? rows : 0),
      pool(threads),
      draws(plan.stages.size()),
      losses(threads) {
  assert(max_batch > 0);
  // The first layer alone reads the batch, so it alone decides whether the batch is stored as bytes
  // or as floats. Only one of the two buffers gets memory.
  takes_pixels = !spec.numbers && plan.stages.front().layer->takes_pixels(products);
  pixels.resize(takes_pixels ? rows * spec.input.size() : 0);
  batch = AlignedVector(takes_pixels ? 0 : rows * spec.input.size());
  // The pool can have fewer threads than requested. `threads` is therefore the upper bound for the
  // members that index `scratch` and for the parts that index `losses`.
  // One scratch memory per thread with the largest size that any layer needs, so that a step
  // allocates nothing.
  std::size_t most = 0;
  for (const Stage& stage : plan.stages) {
    most = std::max(most, stage.layer->scratch_floats(products));
  }
  for (std::size_t member = 0; member < threads; ++member) {
    scratch.emplace_back(most);
  }
  plan_rounds();
}

void Model::Impl::plan_rounds() {
  Round& all = at_once.emplace_back();
  // The pieces of the first stage follow one round with all other stages.
  // From the last stage to the first, in the order in which the deltas become available.
  for (std::size_t i = plan.stages.size(); i-- > 0;) {
    if (i == 0 && !all.empty()) {
      pieces.push_back(all);
    }
    add_parts(all, i, {0, plan.stages[i].layer->gradient_rows()});
  }
  const std::size_t rows = plan.stages.front().layer->gradient_rows();
  if (rows == 0) {
    return;
  }
  // The first stage has variables, so its weights are the first variable of the layout.
  const std::size_t bytes = layout.variables().front().size * sizeof(float);
  const EvenParts cuts(rows, kPieceRows,
                       std::clamp(bytes / kLeastPieceBytes, std::size_t{1}, kMostPieces));
  // Each piece is a round of its own: it is complete, and can be sent, before the next one begins.
  for (std::size_t piece = 0; piece < cuts.count(); ++piece) {
    add_parts(pieces.emplace_back(), 0, {cuts.begin(piece), cuts.end(piece)});
  }
}

void Model::Impl::add_parts(Round& round, std::size_t index, Rows rows) const {
  const Layer& layer = *plan.stages[index].layer;
  const std::size_t all = layer.gradient_rows();
  if (all == 0) {
    return;
  }
  // Waking other threads takes longer than a small product.
  const bool is_small = max_batch * layer.multiply_adds() / all * rows.count() < kLeastWork;
  // Whole panels, so that a part's products are bit-identical to those of one thread.
  const EvenParts parts(rows.count(), kPanelRows, is_small ? 1 : pool.size());
  for (std::size_t part = 0; part < parts.count(); ++part) {
    round.push_back({index, {rows.begin + parts.begin(part), rows.begin + parts.end(part)}});
  }
}

void Model::Impl::load_row(const ImageSet& set, std::size_t row, std::size_t position,
                           ImageShift by) noexcept {
  assert(row < set.rows());
  if (of_numbers()) {
    // The loss sees normalised targets; judge() and Predictor::answer() convert back to the label's
    // own unit.
    targets[position] = (set.targets[row] - set.target_mean) * set.target_scale;
  } else {
    assert(set.labels[row] < spec.classes);
    labels[position] = set.labels[row];
  }
  load_example(set, row, position, by);
}

// A batch's rows are anywhere in the set: the processor cannot predict the next one, and most are
// on pages that are not in its TLB.
template <int kLocality>
std::size_t Model::Impl::prefetch(const ImageSet& set, std::size_t row) const noexcept {
  const std::size_t inputs = spec.input.size();
  const std::size_t size = inputs * (spec.numbers ? sizeof(float) : 1);
  const auto* const begin = spec.numbers ? reinterpret_cast<const char*>(set.numbers.data())
                                         : reinterpret_cast<const char*>(set.images.data());
  const std::size_t bytes = std::min(size, kMostPrefetchedBytes);
  for (std::size_t at = 0; at < bytes; at += kLineBytes) {
    __builtin_prefetch(begin + row * size + at, 0, kLocality);
  }
  // GCC treats a prefetch as no effect: without this statement it removes calls of a function that
  // does nothing else.
  asm volatile("");
  return bytes;
}

void Model::Impl::load_example(const ImageSet& set, std::size_t row, std::size_t position,
                               ImageShift by) noexcept {
  const std::size_t inputs = spec.input.size();
  if (spec.numbers) {
    const float* const numbers = set.numbers.data() + row * inputs;
    float* const example = batch.data() + position * inputs;
    for (std::size_t i = 0; i < inputs; ++i) {
      example[i] = (numbers[i] - set.means[i]) * set.scales[i];
    }
    return;
  }
  const std::uint8_t* image = set.images.data() + row * inputs;
  if (takes_pixels) {
    const auto copy = [](const std::uint8_t* from, std::uint8_t* to, std::size_t count) {
      std::copy_n(from, count, to);
    };
    shift_image(image, spec.input, by, pixels.data() + position * inputs, copy);
  } else {
    shift_image(image, spec.input, by, batch.data() + position * inputs, kernels.pixels_to_floats);
  }
}

LayerPass Model::Impl::pass_of(std::size_t index, const float* parameters,
                               std::size_t member) noexcept {
  Stage& stage = plan.stages[index];
  LayerPass pass{.kernels = &kernels,
                 .products = &products,
                 .input = index == 0 ? batch.data() : plan.outputs[index - 1],
                 .pixels = index == 0 && takes_pixels ? pixels.data() : nullptr,
                 .output = plan.outputs[index],
                 .output_delta = plan.deltas[index],
                 // The gradient by the batch itself is not needed, so the first stage has no memory
                 // for it.
                 .input_delta = index == 0 ? nullptr : plan.deltas[index - 1],
                 .prepared = stage.prepared.data(),
                 .kept = stage.kept.data(),
                 .shared = stage.shared.data(),
                 .scratch = scratch[member].data()};
  for (std::size_t i = 0; i < stage.offsets.size(); ++i) {
    pass.variables[i] = parameters + stage.offsets[i];
  }
  return pass;
}

void Model::Impl::prepare(const float* parameters) noexcept {
  // The first stage reads the batch and prepares nothing.
  for (std::size_t i = 1; i < plan.stages.size(); ++i) {
    if (plan.stages[i].prepared.size() != 0) {
      plan.stages[i].layer->prepare(pass_of(i, parameters, 0), plan.stages[i].prepared.data());
    }
  }
}

LayerPass Model::Impl::pass_of_batch(std::size_t index, const float* parameters) noexcept {
  LayerPass pass = pass_of(index, parameters, 0);
  pass.rows = {0, batch_rows};
  // Draws mark a training pass: batch norm and dropout take their evaluation path without them.
  pass.draws = &draws[index];
  return pass;
}

void Model::Impl::prepare_evaluation(const float* parameters) noexcept {
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    if (plan.measures(i)) {
      plan.stages[i].layer->measure_batch(pass_of(i, parameters, 0));
    }
  }
}

void Model::Impl::forward(const float* parameters, Rows rows, Phase part, std::size_t member,
                          bool trains) noexcept {
  // A segment passes a few rows through all of its layers before it takes the next ones, so that
  // their numbers stay in the cache.
  for (const Segment& segment :
       std::span(plan.segments).subspan(part.begin, part.end - part.begin)) {
    for (Rows block{rows.begin, rows.begin}; block.end < rows.end; block.begin = block.end) {
      block.end = std::min(block.begin + segment.block, rows.end);
      for (std::size_t i = segment.begin; i < segment.end; ++i) {
        LayerPass pass = pass_of(i, parameters, member);
        pass.rows = block;
        pass.draws = trains ? &draws[i] : nullptr;
        // In-place layers must not overwrite the batch itself, or an output that the previous layer
        // needs.
        if (plan.stages[i].layer->in_place() && plan.stages[i].output.size() != 0) {
          const std::size_t size = plan.stages[i].layer->output().size();
          std::copy_n(pass.input + block.begin * size, block.count() * size,
                      pass.output + block.begin * size);
        }
        plan.stages[i].layer->forward(pass);
      }
      // The next segment begins with a layer that measures the batch. Its statistics of these rows
      // are taken here, while the rows are still in the cache.
      if (trains && plan.measures(segment.end)) {
        LayerPass pass = pass_of(segment.end, parameters, member);
        pass.rows = block;
        plan.stages[segment.end].layer->measure_rows(pass);
      }
    }
  }
}

double Model::Impl::differentiate_loss(Rows rows, float scale, float smoothing) noexcept {
  const float* const outputs = plan.outputs.back() + rows.begin * classes();
  float* const delta = plan.deltas.back() + rows.begin * classes();
  // The plan lets the gradient share the logits' memory unless a layer needs the logits for its own
  // backward pass.
  if (delta != outputs) {
    std::copy_n(outputs, rows.count() * classes(), delta);
  }
  const LossPass pass{.kernels = &kernels,
                      .rows = rows.count(),
                      .outputs = classes(),
                      .labels = of_numbers() ? nullptr : labels.data() + rows.begin,
                      .targets = of_numbers() ? targets.data() + rows.begin : nullptr,
                      .scale = scale,
                      .smoothing = smoothing};
  return loss_type(spec.loss).differentiate(pass, delta);
}

// A stage that measures is the first of a phase in the forward pass. In the backward pass it is
// measured there last, and is the first one of the previous phase.
void Model::Impl::propagate(const float* parameters, Rows rows, Phase part,
                            std::size_t member) noexcept {
  for (std::size_t number = part.end; number-- > part.begin;) {
    const Segment& segment = plan.segments[number];
    // The measuring stage belongs to the next phase in the forward pass, but its backward() needs
    // the batch's sums, which exist only now.
    const std::size_t end = segment.end + (plan.measures(segment.end) ? 1 : 0);
    for (Rows block{rows.begin, rows.begin}; block.end < rows.end; block.begin = block.end) {
      block.end = std::min(block.begin + segment.block, rows.end);
      for (std::size_t i = end; i-- > segment.begin;) {
        LayerPass pass = pass_of(i, parameters, member);
        pass.rows = block;
        if (i == segment.begin && i < segment.end && plan.measures(i)) {
          plan.stages[i].layer->measure_rows_back(pass);
        } else if (i > 0) {  // the gradient by the pixels is not needed
          plan.stages[i].layer->backward(pass);
        }
      }
    }
  }
}

double Model::Impl::forward_backward(const float* parameters, const EvenParts& parts) noexcept {
  // The mean over the batch, so that the gradient does not depend on its size.
  const float scale = 1.0F / static_cast<float>(batch_rows);
  const auto run = [&](const auto& with_rows) {
    pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
      with_rows(number, Rows{parts.begin(number), parts.end(number)}, member);
    });
  };
  // The last phase goes forward, through the loss and back in one round, so a thread finds the rows
  // that it has just passed forward in its cache.
  const std::size_t last = plan.phases.size() - 1;
  // A layer that measures the whole batch needs all rows of the layers before it, so each of them
  // ends a phase.
  for (std::size_t phase = 0; phase < last; ++phase) {
    run([&](std::size_t /*number*/, Rows rows, std::size_t member) {
      forward(parameters, rows, plan.phases[phase], member, /*trains=*/true);
    });
    const std::size_t next = plan.first_of(phase + 1);
    // This runs on the calling thread between two rounds: no thread reads `shared` meanwhile.
    plan.stages[next].layer->measure_batch(pass_of_batch(next, parameters));
  }
  run([&](std::size_t number, Rows rows, std::size_t member) {
    forward(parameters, rows, plan.phases[last], member, /*trains=*/true);
    // Per part and added below in their order, so the sum does not depend on which thread is first.
    losses[number] = differentiate_loss(rows, scale, spec.label_smoothing);
    if (observer != nullptr && member == 0) {
      observer->on_forward_done();
    }
    propagate(parameters, rows, plan.phases[last], member);
    if (observer != nullptr && member == 0) {
      observer->on_backward_done();
    }
  });
  for (std::size_t phase = last; phase-- > 0;) {
    const std::size_t next = plan.first_of(phase + 1);
    plan.stages[next].layer->measure_batch_back(pass_of_batch(next, parameters));
    run([&](std::size_t /*number*/, Rows rows, std::size_t member) {
      propagate(parameters, rows, plan.phases[phase], member);
    });
  }
  double sum = 0;
  for (std::size_t number = 0; number < parts.count(); ++number) {
    sum += losses[number];
  }
  return sum;
}

void Model::Impl::differentiate(const float* parameters, const GradientPart& part, float* gradient,
                                std::size_t member) noexcept {
  const Stage& stage = plan.stages[part.stage];
  LayerPass pass = pass_of(part.stage, parameters, member);
  pass.rows = {0, batch_rows};
  // Every part writes its own rows of the flat gradient, so parts need no lock.
  std::array<float*, kMostLayerVariables> gradients{};
  for (std::size_t i = 0; i < stage.offsets.size(); ++i) {
    gradients[i] = gradient + stage.offsets[i];
  }
  stage.layer->gradient(pass, part.rows, std::span(gradients).first(stage.offsets.size()));
}

void Model::Impl::clear_padding(std::span<float> gradient) const noexcept {
  for (const Variable& variable : layout.variables()) {
    const std::size_t end = variable.offset + variable.size;
    // The distance to the next multiple of the alignment.
    const std::size_t padding = -end % kVariableAlignmentFloats;
    // Padding must be zero: it is sent and stored with the gradient.
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
  // Layers that do not compute have no stage and no variables, so counting over the stages follows
  // the order of the layout.
  std::size_t variable = 0;
  for (const Stage& stage : impl_->plan.stages) {
    for (const LayerVariable& each : stage.layer->variables()) {
      const Variable& place = impl_->layout.variables()[variable];
      // The draw depends only on the seed and the position, so every task computes the same values.
      for (std::size_t element = 0; each.deviation != 0 && element < place.size; ++element) {
        const double z = truncated_normal(seed, variable, element);
        parameters[place.offset + element] = static_cast<float>(z * each.deviation);
      }
      if (each.deviation == 0) {
        std::ranges::fill(parameters.subspan(place.offset, place.size), each.initial);
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

void Model::observe(PassObserver* observer) noexcept { impl_->observer = observer; }

void Model::expect(const ImageSet& set, std::span<const std::uint32_t> rows) const noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < rows.size() && bytes < kMostExpectedBytes; ++i) {
    bytes += impl_->prefetch<kSecondCache>(set, rows[i]);
  }
}

void Model::load(const ImageSet& set, std::span<const std::uint32_t> rows, const Place& place) {
  assert(!rows.empty() && rows.size() <= impl_->max_batch);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i + kRowsAhead < rows.size()) {
      impl_->prefetch<kFirstCache>(set, rows[i + kRowsAhead]);
    }
    impl_->load_row(set, rows[i], i);
  }
  impl_->batch_rows = rows.size();
  for (std::size_t i = 0; i < impl_->plan.stages.size(); ++i) {
    // A stage is identified by its position among all layers, so its random numbers do not depend
    // on which layers become stages.
    impl_->draws[i] = {.seed = place.seed,
                       .step = place.step,
                       .first = place.first,
                       .layer = impl_->plan.stages[i].place};
  }
}

float Model::gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                               const OnReady& on_ready) {
  Impl& model = *impl_;
  const std::size_t count = model.batch_rows;
  // evaluate() overwrites the batch and sets batch_rows to 0, so a gradient after it needs load().
  assert(count > 0);
  assert(parameters.size() == model.layout.size());
  assert(gradient.size() == model.layout.size());
  model.prepare(parameters.data());
  const EvenParts parts(count, Impl::kPanelRows, model.pool.size());
  const double sum = model.forward_backward(parameters.data(), parts);
  const auto loss = static_cast<float>(sum / static_cast<double>(count));
  model.clear_padding(gradient);
  // With a receiver the large first layer is computed in pieces, so that the transfer begins before
  // the last piece is done.
  for (const Impl::Round& round : on_ready ? model.pieces : model.at_once) {
    model.pool.run(round.size(), [&](std::size_t number, std::size_t member) {
      model.differentiate(parameters.data(), round[number], gradient.data(), member);
    });
    const Impl::GradientPart& last = round.back();
    const std::size_t rows_of_first = model.plan.stages.front().layer->gradient_rows();
    // The last piece is reported by returning, so `on_ready` is called once less than there are
    // pieces.
    if (last.stage == 0 && last.rows.end < rows_of_first) {
      // A row of the first variable is contiguous and rows are computed in ascending order, so the
      // finished rows are a prefix of that variable.
      on_ready(loss, last.rows.end * (model.layout.variables().front().size / rows_of_first));
    }
  }
  return loss;
}

}  // namespace disttf::math
