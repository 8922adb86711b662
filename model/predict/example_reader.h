// Parses a file of examples for a model. Recognizes its format by the first bytes, not by its name:
//
//   PNG, JPEG   one image, of the model's height and width
//   IDX         images, as in MNIST
//   NPY         [rows, ...] bytes or numbers; a single example has no first dimension
//   else        a table: CSV (read_table_examples)
//
// Any of them may be gzipped. All functions throw data::UnusableData with a sentence that begins
// with the file's name. Pure; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/trained_model.h"

namespace disttf::roles {

// Either bytes or numbers; labels, if known, for every example.
struct Examples {
  std::vector<std::uint8_t> pixels;  // [rows, inputs]
  std::vector<float> numbers;        // [rows, inputs]
  std::vector<std::size_t> labels;   // [rows] classes
  std::vector<float> targets;        // [rows] numbers
  bool is_single = false;            // the file is one example without rows
  [[nodiscard]] std::size_t rows(std::size_t inputs) const noexcept {
    return (pixels.size() + numbers.size()) / inputs;
  }
};

// Limit of a gzipped file's extracted size.
inline constexpr std::size_t kMostExampleBytes = std::size_t{1} << 30U;

[[nodiscard]] Examples read_examples(std::span<const std::uint8_t> file, const std::string& name,
                                     const TrainedModel& model);

// Reads an IDX file of labels. Throws where a label is not a class of the model.
[[nodiscard]] std::vector<std::size_t> read_labels(std::span<const std::uint8_t> file,
                                                   const std::string& name,
                                                   const TrainedModel& model);

// The class of that name; nullopt: there is none.
[[nodiscard]] std::optional<std::size_t> class_called(const TrainedModel& model,
                                                      std::string_view name);

// Parses a table of text into examples: CSV with commas, semicolons, tabs or bars, as training
// reads it (data/own/table_head.h, class_name.h, text_encoding.h), so a training file works for
// inference, too. Columns are matched by name where the first line has the training names, in any
// order; others are ignored. Without a line of names a row has exactly the model's numbers, or all
// columns of a table that was trained without names. Labels, if present, are compared with the
// answers.

// Throws data::UnusableData with file, line and column.
[[nodiscard]] Examples read_table(std::string_view text, const std::string& name,
                                  const TrainedModel& model);

}  // namespace disttf::roles
