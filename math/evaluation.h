// How well a model does on a set of images.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace disttf::math {

struct Evaluation {
  double cross_entropy = 0;  // mean per image, natural logarithm
  std::size_t correct = 0;   // images that are judged to be of their class
  std::size_t rows = 0;      // images
  std::size_t classes = 0;
  // [classes, classes]: so many images of the class of the row are judged to be of the class of
  // the column. An image whose logits are not all numbers is judged to be of none, and is in none.
  std::vector<std::uint64_t> confusion{};

  // Each is a share from 0 to 1, and 0 where it would be one of nothing.
  [[nodiscard]] double accuracy() const noexcept;
  // Of the images that are judged to be of `one`, those that are.
  [[nodiscard]] double precision(std::size_t one) const noexcept;
  // Of the images of `one`, those that are judged to be.
  [[nodiscard]] double recall(std::size_t one) const noexcept;

  [[nodiscard]] std::uint64_t count(std::size_t label, std::size_t judged) const noexcept {
    return confusion[label * classes + judged];
  }
  [[nodiscard]] std::uint64_t of_class(std::size_t label) const noexcept;
  [[nodiscard]] std::uint64_t judged_as(std::size_t judged) const noexcept;
};

}  // namespace disttf::math
