#include "math/predictor.h"

#include <algorithm>
#include <cassert>

#include "math/losses/registry.h"

namespace disttf::math {
namespace {

constexpr float kWhite = 255;
constexpr std::size_t kPanelRows = Model::kInferredPanelRows;

bool is_a_byte(float value) noexcept {
  // Not std::floor(), which is a function call.
  return value >= 0 && value <= kWhite && value == static_cast<float>(static_cast<int>(value));
}

}  // namespace

Predictor::Predictor(const ModelSpec& spec, std::span<const float> parameters,
                     const NumberScaling& scaling, std::size_t max_rows, Isa isa,
                     ComputeDtype dtype, std::size_t threads)
    : spec_(spec),
      parameters_(parameters),
      scaling_(scaling),
      // Whole panels, as infer() requires.
      max_rows_((max_rows + kPanelRows - 1) / kPanelRows * kPanelRows),
      isa_(isa),
      dtype_(dtype),
      threads_(threads),
      model_(spec, max_rows_, isa, dtype, threads),
      zeros_(spec.input.size()),
      ones_(spec.input.size(), spec.numbers ? 1.0F : 1.0F / kWhite) {
  assert(parameters.size() == model_.layout().size());
  assert(scaling.means.empty() || scaling.means.size() == inputs());
  assert(scaling.means.size() == scaling.scales.size());
}

void Predictor::predict(std::span<const std::uint8_t> pixels, std::span<float> outputs) {
  assert(!spec_.numbers && pixels.size() % inputs() == 0);
  model_.infer(parameters_, {.images = pixels}, pixels.size() / inputs(), outputs);
  answer(outputs);
}

void Predictor::predict_numbers(std::span<const float> numbers, std::span<float> outputs) {
  const std::size_t rows = numbers.size() / inputs();
  assert(numbers.size() % inputs() == 0 && outputs.size() == rows * this->outputs());
  if (spec_.numbers) {
    infer_numbers(numbers, outputs);
    answer(outputs);
    return;
  }
  // The image alone decides which way it takes, so its bits depend on nothing else.
  as_bytes_.resize(numbers.size());
  std::size_t begin = 0;
  const auto is_bytes = [&](std::size_t row) {
    return std::ranges::all_of(numbers.subspan(row * inputs(), inputs()), is_a_byte);
  };
  // Consecutive images of one kind go through the model together, because a call for each image
  // would be slower.
  while (begin < rows) {
    const bool bytes = is_bytes(begin);
    std::size_t end = begin + 1;
    while (end < rows && is_bytes(end) == bytes) {
      ++end;
    }
    const std::span<const float> run = numbers.subspan(begin * inputs(), (end - begin) * inputs());
    const std::span<float> out =
        outputs.subspan(begin * this->outputs(), (end - begin) * this->outputs());
    if (bytes) {
      std::ranges::transform(run, as_bytes_.begin(),
                             [](float value) { return static_cast<std::uint8_t>(value); });
      model_.infer(parameters_, {.images = std::span(as_bytes_).first(run.size())}, end - begin,
                   out);
    } else {
      infer_numbers(run, out);
    }
    begin = end;
  }
  answer(outputs);
}

void Predictor::infer_numbers(std::span<const float> numbers, std::span<float> outputs) {
  // Images as numbers are divided by 255, which the model of bytes does in its first layer.
  const bool is_scaled = spec_.numbers && !scaling_.means.empty();
  const ImageSet set{.numbers = numbers,
                     .means = is_scaled ? scaling_.means : std::span<const float>(zeros_),
                     .scales = is_scaled ? scaling_.scales : std::span<const float>(ones_)};
  (spec_.numbers ? model_ : model_of_floats())
      .infer(parameters_, set, numbers.size() / inputs(), outputs);
}

Model& Predictor::model_of_floats() {
  // Most predictors never see such an image, so the second model's memory is allocated on first
  // use.
  if (of_floats_ == nullptr) {
    ModelSpec spec = spec_;
    spec.numbers = true;
    of_floats_ = std::make_unique<Model>(spec, max_rows_, isa_, dtype_, threads_);
  }
  return *of_floats_;
}

void Predictor::answer(std::span<float> outputs) const noexcept {
  const LossType& loss = loss_type(spec_.loss);
  if (loss.of_numbers) {
    for (float& each : outputs) {
      // The inverse of the normalisation that load_row() applies to targets.
      each = each / scaling_.target_scale + scaling_.target_mean;
    }
  }
  for (std::size_t at = 0; loss.answer != nullptr && at < outputs.size(); at += spec_.classes) {
    loss.answer(outputs.subspan(at, spec_.classes));
  }
}

}  // namespace disttf::math
