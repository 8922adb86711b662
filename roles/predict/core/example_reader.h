// The bytes of a file -> examples for a model. What a file is its first bytes say, not its name:
//
//   PNG, JPEG   one image, of the model's height and width
//   IDX         images, as MNIST has them
//   NPY         [rows, ...] bytes or numbers; one example has no first size
//   else        a table: CSV (table_examples.h)
//
// Any of them may be gzipped. Everything throws data::UnusableData with a sentence that begins with
// the file's name. Pure; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// Either bytes or numbers; labels where they are known, then of all.
struct Examples {
  std::vector<std::uint8_t> pixels;  // [rows, inputs]
  std::vector<float> numbers;        // [rows, inputs]
  std::vector<std::size_t> labels;   // [rows] classes
  std::vector<float> targets;        // [rows] numbers
  bool is_single = false;            // the file has one, and no rows
  [[nodiscard]] std::size_t rows(std::size_t inputs) const noexcept {
    return (pixels.size() + numbers.size()) / inputs;
  }
};

// What a gzipped file may come to.
inline constexpr std::size_t kMostExampleBytes = std::size_t{1} << 30U;

[[nodiscard]] Examples read_examples(std::span<const std::uint8_t> file, const std::string& name,
                                     const TrainedModel& model);

// An IDX file of labels. Throws where one is no class of the model.
[[nodiscard]] std::vector<std::size_t> read_labels(std::span<const std::uint8_t> file,
                                                   const std::string& name,
                                                   const TrainedModel& model);

// The class that is called so; none: there is no such class.
[[nodiscard]] std::optional<std::size_t> class_called(const TrainedModel& model,
                                                      std::string_view name);

}  // namespace disttf::roles
