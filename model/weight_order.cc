#include "model/weight_order.h"

#include <algorithm>

namespace disttf::roles {
namespace {

// Transposes [rows, columns], whose elements are equally many floats, to [columns, rows].
std::vector<float> turned(std::span<const float> from, std::size_t rows, std::size_t columns) {
  // 1 for a number per input, the number of units for the weights of a dense layer.
  const std::size_t width = from.size() / (rows * columns);
  std::vector<float> to(from.size());
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t column = 0; column < columns; ++column) {
      const auto each = from.subspan((row * columns + column) * width, width);
      std::copy(each.begin(), each.end(),
                to.begin() + static_cast<std::ptrdiff_t>((column * rows + row) * width));
    }
  }
  return to;
}

// Swaps the first and the last of three dimensions.
std::vector<float> reversed(std::span<const float> from, std::size_t first, std::size_t middle,
                            std::size_t last) {
  std::vector<float> to(from.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < first; ++i) {
    for (std::size_t j = 0; j < middle; ++j) {
      for (std::size_t k = 0; k < last; ++k) {
        // Reads in order and writes with strides; exports are rare, so no blocking is needed.
        to[(k * middle + j) * first + i] = from[next++];
      }
    }
  }
  return to;
}

}  // namespace

std::vector<float> channels_first(std::span<const float> rows, const math::Shape& image) {
  return turned(rows, image.height * image.width, image.channels);
}

std::vector<float> channels_last(std::span<const float> rows, const math::Shape& image) {
  return turned(rows, image.channels, image.height * image.width);
}

std::vector<float> units_first(std::span<const float> weights, const KernelShape& shape) {
  return reversed(weights, shape.places, shape.channels, shape.units);
}

std::vector<float> units_last(std::span<const float> weights, const KernelShape& shape) {
  return reversed(weights, shape.units, shape.channels, shape.places);
}

}  // namespace disttf::roles
