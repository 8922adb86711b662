// What is told of an evaluation beside the result line: a table of the classes for people, a line
// of JSON for programs. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "math/evaluation.h"

namespace disttf::roles {

// More classes than these have no confusion matrix in class_table(): its lines would be too long.
inline constexpr std::size_t kMostClassesOfATable = 20;

// "cross entropy"; of labels that are numbers "squared error".
[[nodiscard]] std::string_view loss_word(const math::Evaluation& evaluation) noexcept;
// "validation cross entropy = 0.0648704"; of labels that are numbers "validation mean squared error
// = 2890.1", in the square of their unit.
[[nodiscard]] std::string validation_text(const math::Evaluation& validation);
// "test accuracy = 0.9771", or "test mean absolute error = 43.1".
[[nodiscard]] std::string test_text(const math::Evaluation& test);
// "MNIST accuracy: 0.9771", or "diabetes mean absolute error: 43.1, mean squared error: 2890.1".
[[nodiscard]] std::string result_line(std::string_view name, const math::Evaluation& test);

// The lines of two tables: images, precision and recall of each class; then how many images of the
// class of the row are judged to be of the class of the column. Of two classes then the area under
// the receiver operating characteristic. `names`: of the classes; none: 0, 1, 2, ...
[[nodiscard]] std::vector<std::string> class_table(const math::Evaluation& test,
                                                   std::span<const std::string_view> names);

struct Metrics {
  std::uint64_t step = 0;
  double seconds = 0;  // since this process has begun to train
  const math::Evaluation* validation = nullptr;
  const math::Evaluation* test = nullptr;
  // At the end of the run also what each class comes to, by these names.
  std::optional<std::span<const std::string_view>> result_classes{};
  std::string task{};  // that has evaluated, "evaluator:0"; empty: the chief
};

// One line of --metrics_file, with its end: an object. docs/training.md has its keys. A loss that
// is not finite is null.
[[nodiscard]] std::string metrics_line(const Metrics& metrics);

}  // namespace disttf::roles
