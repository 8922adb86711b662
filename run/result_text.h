// Texts about an evaluation besides the result line: a table of classes for people, a line of JSON
// for programs. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "math/evaluation.h"

namespace disttf::roles {

// With more classes than this class_table() has no confusion matrix: its lines would be too long.
inline constexpr std::size_t kMostClassesOfATable = 20;

// "cross entropy"; for numeric labels "squared error".
[[nodiscard]] std::string_view loss_word(const math::Evaluation& evaluation) noexcept;
// "validation cross entropy = 0.0648704"; for numeric labels "validation mean squared error =
// 2890.1", in the square of their unit.
[[nodiscard]] std::string validation_text(const math::Evaluation& validation);
// "test accuracy = 0.9771", or "test mean absolute error = 43.1".
[[nodiscard]] std::string test_text(const math::Evaluation& test);
// Of a user's program: "loss = 0.0648704, accuracy = 0.9771, f1 = 0.97": what it told; empty if it
// told nothing.
[[nodiscard]] std::string told_text(const math::Evaluation& evaluation);
// "MNIST accuracy: 0.9771", or "diabetes mean absolute error: 43.1, mean squared error: 2890.1"; of
// a program "mnist accuracy: 0.9771", "mnist loss: 0.0648704" if it told no accuracy, or "mnist is
// trained".
[[nodiscard]] std::string result_line(std::string_view name, const math::Evaluation& test);

// Returns the lines of two tables: images, precision and recall of each class; then the confusion
// matrix, with a row for each true class and a column for each predicted one. With two classes the
// area under the ROC curve follows. `names`: of the classes; if empty: 0, 1, 2, ...
[[nodiscard]] std::vector<std::string> class_table(const math::Evaluation& test,
                                                   std::span<const std::string_view> names);

struct Metrics {
  std::uint64_t step = 0;
  double seconds = 0;  // since this process began to train
  const math::Evaluation* validation = nullptr;
  const math::Evaluation* test = nullptr;
  // At the end of the run: the measures of each class, under these names.
  std::optional<std::span<const std::string_view>> result_classes{};
  std::string task{};  // the task that has evaluated, "evaluator:0"; empty: the chief
};

// Returns one line of --metrics_file, with its newline: an object. docs/training.md lists its
// keys. A non-finite loss is null.
[[nodiscard]] std::string metrics_line(const Metrics& metrics);

}  // namespace disttf::roles
