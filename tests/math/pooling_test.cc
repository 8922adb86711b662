// Max pooling compared with plain loops: channels that do and do not fill vectors of every length,
// equal numbers, infinities, NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"
#include "math/kernels_table.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

PoolingShape pooling_of(std::size_t channels, std::size_t size, std::size_t stride) {
  constexpr std::size_t kHeight = 7;
  constexpr std::size_t kWidth = 6;
  return {.height = kHeight,
          .width = kWidth,
          .channels = channels,
          .size = size,
          .stride = stride,
          .out_height = (kHeight - size) / stride + 1,
          .out_width = (kWidth - size) / stride + 1};
}

// Few different numbers, so that many are equal; every ninth is NaN or infinite.
AlignedVector image_of(const PoolingShape& shape) {
  AlignedVector image(shape.height * shape.width * shape.channels);
  for (std::size_t i = 0; i < image.size(); ++i) {
    image.data()[i] = std::floor(4.0F * made_up_number(5, i));
    if (i % 9 == 4) {
      image.data()[i] = std::numeric_limits<float>::quiet_NaN();
    } else if (i % 9 == 7) {
      image.data()[i] = (i % 2 == 0 ? 1.0F : -1.0F) * std::numeric_limits<float>::infinity();
    }
  }
  return image;
}

struct Pooled {
  std::vector<float> output;
  std::vector<float> chosen;
  std::vector<float> image;  // the positions that received `delta`
};

// One number at a time; element i of the output has delta i + 1.
Pooled by_definition(const AlignedVector& image, const PoolingShape& shape) {
  Pooled pooled{.output = {}, .chosen = {}, .image = std::vector<float>(image.size())};
  for (std::size_t y = 0; y < shape.out_height; ++y) {
    for (std::size_t x = 0; x < shape.out_width; ++x) {
      for (std::size_t c = 0; c < shape.channels; ++c) {
        const auto at = [&](std::size_t place) {
          const std::size_t row = y * shape.stride + place / shape.size;
          const std::size_t column = x * shape.stride + place % shape.size;
          return (row * shape.width + column) * shape.channels + c;
        };
        std::size_t best = 0;
        for (std::size_t place = 1; place < shape.size * shape.size; ++place) {
          const float value = image.data()[at(place)];
          if (std::isnan(value) || value > image.data()[at(best)]) {
            best = place;
          }
        }
        pooled.output.push_back(image.data()[at(best)]);
        pooled.chosen.push_back(static_cast<float>(best));
        pooled.image[at(best)] += static_cast<float>(pooled.output.size());
      }
    }
  }
  return pooled;
}

class MaxPool : public IsaTest {};
INSTANTIATE_TEST_SUITE_P(All, MaxPool, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(MaxPool, IsWhatTheDefinitionSaysForAnyNumberOfChannels) {
  for (const std::size_t channels : {1U, 3U, 4U, 7U, 8U, 12U, 16U, 31U, 40U}) {
    for (const PoolingShape& shape : {pooling_of(channels, 2, 2), pooling_of(channels, 3, 1)}) {
      const AlignedVector image = image_of(shape);
      const Pooled expected = by_definition(image, shape);
      const std::size_t outputs = expected.output.size();
      AlignedVector output(outputs);
      AlignedVector chosen(outputs);
      AlignedVector delta(outputs);
      for (std::size_t i = 0; i < outputs; ++i) {
        delta.data()[i] = static_cast<float>(i + 1);
      }
      AlignedVector back = made_up_numbers(image.size(), 6);  // all of it must be written
      kernels(isa()).max_pool(image.data(), output.data(), chosen.data(), shape);
      kernels(isa()).max_pool_backward(delta.data(), chosen.data(), back.data(), shape);
      EXPECT_EQ(bits_of(output.span()), bits_of(expected.output)) << channels;
      EXPECT_EQ(bits_of(chosen.span()), bits_of(expected.chosen)) << channels;
      EXPECT_EQ(bits_of(back.span()), bits_of(expected.image)) << channels;
    }
  }
}

}  // namespace
}  // namespace disttf::math
