// The shape of one example at a layer's input or output: an image of height x width positions with
// adjacent channels; or, where height and width are 1, a list of numbers.
//
// Values only; callable from any thread.
#pragma once

#include <cstddef>
#include <string>

namespace disttf::math {

struct Shape {
  std::size_t height = 1;
  std::size_t width = 1;
  std::size_t channels = 1;
  [[nodiscard]] std::size_t size() const noexcept { return height * width * channels; }
  friend bool operator==(const Shape&, const Shape&) = default;
};

// "28x28x1", or "100" where there is only one position.
[[nodiscard]] inline std::string to_string(const Shape& shape) {
  std::string text;
  if (shape.height != 1 || shape.width != 1) {
    text = std::to_string(shape.height) + "x" + std::to_string(shape.width) + "x";
  }
  return text + std::to_string(shape.channels);
}

}  // namespace disttf::math
