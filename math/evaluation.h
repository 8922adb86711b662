// How well a model does on a set of examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace disttf::math {

struct Evaluation {
  double loss = 0;          // mean per example: what is trained on, without label smoothing
  std::size_t correct = 0;  // examples that are judged to be of their class
  std::size_t rows = 0;     // examples
  std::size_t classes = 0;  // 0: labels are numbers
  // [classes, classes]: so many examples of the class of the row are judged to be of the class of
  // the column. One whose outputs are not all numbers is judged to be of none, and is in none.
  std::vector<std::uint64_t> confusion{};
  // [rows] by example the class that it is judged to be of; `classes`: of none. Empty where labels
  // are numbers.
  std::vector<std::uint16_t> answers{};
  // Of two classes: the area under the receiver operating characteristic, the share of all pairs of
  // an example of class 1 and one of class 0 in which the first one's outputs lie further apart
  // towards class 1; equal ones count half. None where there are no such pairs, or where an output
  // is not a number.
  std::optional<double> area_under_curve{};
  // Of labels that are numbers, in their own unit; means per example.
  double squared_error = 0;
  double absolute_error = 0;

  // Each is a share from 0 to 1, and 0 where it would be one of nothing.
  [[nodiscard]] double accuracy() const noexcept;
  // Of the examples that are judged to be of `one`, those that are.
  [[nodiscard]] double precision(std::size_t one) const noexcept;
  // Of the examples of `one`, those that are judged to be.
  [[nodiscard]] double recall(std::size_t one) const noexcept;

  [[nodiscard]] std::uint64_t count(std::size_t label, std::size_t judged) const noexcept {
    return confusion[label * classes + judged];
  }
  [[nodiscard]] std::uint64_t of_class(std::size_t label) const noexcept;
  [[nodiscard]] std::uint64_t judged_as(std::size_t judged) const noexcept;
};

// The first of the largest logits; their number where one is not a number.
[[nodiscard]] std::size_t judged_class(std::span<const float> logits) noexcept;

// An example of two classes: how far its outputs lie apart towards class 1, and whether it is of
// it.
struct Margin {
  double towards_one = 0;
  bool is_one = false;
};
// Evaluation::area_under_curve of these; they are put in another order.
[[nodiscard]] std::optional<double> area_under_curve(std::span<Margin> margins);

}  // namespace disttf::math
