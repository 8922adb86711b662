// Evaluation of a model: its outputs for a whole set, and the results.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <iterator>

#include "math/model_impl.h"

namespace disttf::math {

void Model::Impl::judge(std::size_t count, const ImageSet& set, Evaluation& result,
                        Margin* margins) noexcept {
  const std::span<const float> outputs(plan.outputs.back(), count * classes());
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<const float> row = outputs.subspan(i * classes(), classes());
    if (of_numbers()) {
      const double error =
          static_cast<double>(row[0] - targets[i]) / static_cast<double>(set.target_scale);
      result.squared_error += error * error;
      result.absolute_error += std::abs(error);
      continue;
    }
    const std::size_t judged = judged_class(row);
    result.correct += judged == labels[i] ? 1U : 0U;
    result.answers.push_back(static_cast<std::uint16_t>(judged));
    // judged_class() returns the number of classes for an example with a NaN.
    if (judged < classes()) {
      ++result.confusion[labels[i] * classes() + judged];
    }
    if (margins != nullptr) {
      margins[i] = {.towards_one = static_cast<double>(row[1]) - static_cast<double>(row[0]),
                    .is_one = labels[i] == 1};
    }
  }
}

void Model::Impl::give(const float* parameters, const ImageSet& set, std::size_t begin, Rows rows,
                       ImageShift by, std::size_t member) noexcept {
  for (std::size_t i = rows.begin; i < rows.end; ++i) {
    load_row(set, begin + i, i, by);
  }
  forward(parameters, rows, {.begin = 0, .end = plan.segments.size()}, member, /*trains=*/false);
}

void Model::Impl::give_shifts(const float* parameters, const ImageSet& set, std::size_t begin,
                              Rows rows, std::size_t most, float* sums,
                              std::size_t member) noexcept {
  // A thread uses only its own rows of `sums`, so threads need no lock.
  const std::size_t first = rows.begin * classes();
  const std::size_t last = rows.end * classes();
  float* const outputs = plan.outputs.back();
  std::fill(sums + first, sums + last, 0.0F);
  for_each_shift(most, [&](ImageShift by) {
    give(parameters, set, begin, rows, by, member);
    std::transform(sums + first, sums + last, outputs + first, sums + first, std::plus<>());
  });
  // The mean of the logits, not of the probabilities: the loss takes logits.
  const auto shifts = static_cast<float>(count_of_shifts(most));
  std::transform(sums + first, sums + last, outputs + first,
                 [shifts](float sum) { return sum / shifts; });
}

Evaluation Model::evaluate(std::span<const float> parameters, const ImageSet& set,
                           std::size_t shifts) {
  Impl& model = *impl_;
  assert(parameters.size() == model.layout.size());
  assert(shifts == 0 || !model.spec.numbers);
  const std::size_t classes = model.of_numbers() ? 0 : model.spec.classes;
  Evaluation result{.rows = set.rows(),
                    .classes = classes,
                    .confusion = std::vector<std::uint64_t>(classes * classes)};
  result.answers.reserve(classes == 0 ? 0 : set.rows());
  std::vector<Margin> margins(classes == 2 ? set.rows() : 0);
  AlignedVector sums(shifts == 0 ? 0 : model.max_batch * model.classes());
  model.batch_rows = 0;
  model.prepare_evaluation(parameters.data());
  for (std::size_t begin = 0; begin < set.rows(); begin += model.max_batch) {
    const std::size_t count = std::min(model.max_batch, set.rows() - begin);
    const EvenParts parts(count, Impl::kPanelRows, model.pool.size());
    model.pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
      const Rows rows{parts.begin(number), parts.end(number)};
      if (shifts == 0) {
        model.give(parameters.data(), set, begin, rows, {}, member);
      } else {
        model.give_shifts(parameters.data(), set, begin, rows, shifts, sums.data(), member);
      }
    });
    // Before the loss, whose gradient can overwrite the outputs in place.
    model.judge(count, set, result, margins.empty() ? nullptr : margins.data() + begin);
    result.loss += model.differentiate_loss({0, count}, 1.0F /* the gradient is thrown away */, 0);
  }
  const double rows = std::max<double>(1, static_cast<double>(result.rows));
  result.loss /= rows;
  result.squared_error /= rows;
  result.absolute_error /= rows;
  result.area_under_curve = area_under_curve(margins);
  return result;
}

void Model::infer(std::span<const float> parameters, const ImageSet& set, std::size_t rows,
                  std::span<float> outputs) {
  Impl& model = *impl_;
  assert(parameters.size() == model.layout.size());
  assert(outputs.size() == rows * model.classes());
  assert(model.max_batch % Impl::kPanelRows == 0);
  model.batch_rows = 0;
  model.prepare_evaluation(parameters.data());
  for (std::size_t begin = 0; begin < rows; begin += model.max_batch) {
    const std::size_t count = std::min(model.max_batch, rows - begin);
    const EvenParts parts(count, Impl::kPanelRows, model.pool.size());
    model.pool.run(parts.count(), [&](std::size_t number, std::size_t member) {
      const Rows part{parts.begin(number), parts.end(number)};
      for (std::size_t i = part.begin; i < part.end; ++i) {
        model.load_example(set, begin + i, i);
      }
      // Whole panels: on the generic set the bits of a row depend on whether it is in one. What
      // follows the last row is computed, too, and its outputs are ignored.
      // Only the last part can end inside a panel, and max_batch is a multiple of a panel, so the
      // padding overlaps no other part's rows.
      const std::size_t panels = (part.count() + Impl::kPanelRows - 1) / Impl::kPanelRows;
      const Rows padded{part.begin, part.begin + panels * Impl::kPanelRows};
      model.forward(parameters.data(), padded, {.begin = 0, .end = model.plan.segments.size()},
                    member, /*trains=*/false);
    });
    std::copy_n(model.plan.outputs.back(), count * model.classes(),
                outputs.data() + begin * model.classes());
  }
}

std::vector<float> Model::inputs_of_last(std::span<const float> parameters, const ImageSet& set,
                                         std::size_t rows) {
  Impl& model = *impl_;
  assert(rows <= set.rows());
  std::size_t last = model.plan.stages.size() - 1;
  // Layers behind the last product, such as an activation, are not what the caller asks for.
  while (last > 0 && model.plan.stages[last].layer->multiply_adds() == 0) {
    --last;
  }
  const std::size_t width = model.plan.stages[last].layer->input().size();
  std::vector<float> inputs;
  inputs.reserve(rows * width);
  model.batch_rows = 0;
  model.prepare_evaluation(parameters.data());
  for (std::size_t begin = 0; begin < rows; begin += model.max_batch) {
    const std::size_t count = std::min(model.max_batch, rows - begin);
    model.give(parameters.data(), set, begin, {0, count}, {}, /*member=*/0);
    if (last == 0 && model.takes_pixels) {
      constexpr float kWhite = 255;
      std::transform(model.pixels.begin(),
                     model.pixels.begin() + static_cast<std::ptrdiff_t>(count * width),
                     std::back_inserter(inputs),
                     [](std::uint8_t pixel) { return static_cast<float>(pixel) / kWhite; });
    } else {
      const float* const from = last == 0 ? model.batch.data() : model.plan.outputs[last - 1];
      inputs.insert(inputs.end(), from, from + count * width);
    }
  }
  return inputs;
}

}  // namespace disttf::math
