// The quality of a model on a set of examples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace disttf::math {

// A number that a user's program tells, with its name; not finite: it is none.
using ToldNumber = std::pair<std::string, double>;
using ToldNumbers = std::vector<ToldNumber>;

struct Evaluation {
  double loss = 0;          // mean per example: the training loss without label smoothing
  std::size_t correct = 0;  // examples that are classified correctly
  std::size_t rows = 0;     // examples
  std::size_t classes = 0;  // 0: labels are numbers
  // [classes, classes]: the number of examples of the row's class that are classified as the
  // column's class. An example whose outputs are not all numbers gets no class and is not counted.
  std::vector<std::uint64_t> confusion{};
  // [rows] the class assigned to each example; `classes`: none. Empty where labels are numbers.
  std::vector<std::uint16_t> answers{};
  // For two classes: the area under the receiver operating characteristic. It is the share of all
  // pairs of an example of class 1 and one of class 0 in which the first one's outputs lie further
  // apart towards class 1; ties count half. nullopt without such pairs, or where an output is not a
  // number.
  std::optional<double> area_under_curve{};
  // For labels that are numbers, in their own unit; means per example.
  double squared_error = 0;
  double absolute_error = 0;
  // The evaluation of a user's program, which alone knows its examples: only the loss and these two
  // say something. The loss is not a number if the program told none.
  bool is_told = false;
  std::optional<double> told_accuracy{};
  ToldNumbers told{};  // its other numbers

  // Whether accuracy() says something.
  [[nodiscard]] bool has_accuracy() const noexcept {
    return is_told ? told_accuracy.has_value() : classes != 0;
  }
  // Each is a share from 0 to 1, and 0 if its denominator is 0. The accuracy of a program is what
  // it told.
  [[nodiscard]] double accuracy() const noexcept;
  // Of the examples classified as `one`, the share that belongs to it.
  [[nodiscard]] double precision(std::size_t one) const noexcept;
  // Of the examples of `one`, the share classified as it.
  [[nodiscard]] double recall(std::size_t one) const noexcept;

  [[nodiscard]] std::uint64_t count(std::size_t label, std::size_t judged) const noexcept {
    return confusion[label * classes + judged];
  }
  [[nodiscard]] std::uint64_t of_class(std::size_t label) const noexcept;
  [[nodiscard]] std::uint64_t judged_as(std::size_t judged) const noexcept;
};

// The index of the first of the largest logits; the number of logits if one is not a number.
[[nodiscard]] std::size_t judged_class(std::span<const float> logits) noexcept;

// An example of two classes: how far its outputs lie apart towards class 1, and whether it belongs
// to class 1.
struct Margin {
  double towards_one = 0;
  bool is_one = false;
};
// Evaluation::area_under_curve of these; reorders them.
[[nodiscard]] std::optional<double> area_under_curve(std::span<Margin> margins);

}  // namespace disttf::math
