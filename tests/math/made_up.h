// Generated numbers for the tests of math/, identical on every run and machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "math/aligned.h"
#include "math/losses/registry.h"
#include "math/model.h"
#include "math/random.h"

namespace disttf::math {

inline ModelSpec softmax(std::size_t inputs, std::size_t classes) {
  return {
      .kind = ModelKind::kSoftmax, .input = {.channels = inputs}, .hidden = {}, .classes = classes};
}
inline ModelSpec mlp(std::size_t inputs, std::vector<std::size_t> hidden, std::size_t classes) {
  return {.kind = ModelKind::kMlp,
          .input = {.channels = inputs},
          .hidden = std::move(hidden),
          .classes = classes};
}

// Differs from the product's own purposes.
inline constexpr std::uint32_t kTestPurpose = 1000;

// Uniform in [-1, 1).
inline float made_up_number(std::uint64_t stream, std::uint64_t index) {
  const std::uint64_t bits = random_bits(7, kTestPurpose, stream, index);
  return static_cast<float>(bits >> 40U) / 8388608.0F - 1.0F;
}

inline AlignedVector made_up_numbers(std::size_t size, std::uint64_t stream, float scale = 1.0F) {
  AlignedVector values(size);
  for (std::size_t i = 0; i < size; ++i) {
    values.data()[i] = scale * made_up_number(stream, i);
  }
  return values;
}

// Examples of noise with unrelated labels.
struct MadeUpImages {
  MadeUpImages(std::size_t rows, std::size_t inputs, std::size_t classes)
      : images(rows * inputs),
        labels(rows),
        numbers(made_up_numbers(rows * inputs, 1002, 8)),
        means(made_up_numbers(inputs, 1003, 3)),
        scales(made_up_numbers(inputs, 1004, 0.3F)),
        targets(made_up_numbers(rows, 1005, 50)) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<std::uint8_t>(random_bits(7, kTestPurpose, 1000, i));
    }
    for (std::size_t i = 0; i < rows; ++i) {
      labels[i] = static_cast<std::uint8_t>(random_bits(7, kTestPurpose, 1001, i) % classes);
    }
  }
  [[nodiscard]] ImageSet set() const { return {.images = images, .labels = labels}; }
  // Returns the kind of examples that `spec` takes: images or numbers, classes or targets.
  [[nodiscard]] ImageSet set_for(const ModelSpec& spec) const {
    ImageSet examples;
    if (spec.numbers) {
      examples.numbers = numbers.span();
      examples.means = means.span();
      examples.scales = scales.span();
    } else {
      examples.images = images;
    }
    if (loss_type(spec.loss).of_numbers) {
      examples.targets = targets.span();
      examples.target_mean = 5;
      examples.target_scale = 0.03F;
    } else {
      examples.labels = labels;
    }
    return examples;
  }

  std::vector<std::uint8_t> images;
  std::vector<std::uint8_t> labels;
  AlignedVector numbers;
  AlignedVector means;
  AlignedVector scales;
  AlignedVector targets;
};

// [begin, begin + count)
inline std::vector<std::uint32_t> row_numbers(std::size_t begin, std::size_t count) {
  std::vector<std::uint32_t> rows(count);
  for (std::size_t i = 0; i < count; ++i) {
    rows[i] = static_cast<std::uint32_t>(begin + i);
  }
  return rows;
}

// Parameters of both signs everywhere except in the padding.
inline AlignedVector made_up_parameters(const ParameterLayout& layout, float scale) {
  AlignedVector values(layout.size());
  for (const Variable& variable : layout.variables()) {
    for (std::size_t i = 0; i < variable.size; ++i) {
      values.data()[variable.offset + i] = scale * made_up_number(variable.offset, i);
    }
  }
  return values;
}

}  // namespace disttf::math
