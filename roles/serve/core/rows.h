// The rows of a request: stored as bytes while all values are whole numbers from 0 to 255 and the
// model takes images, else as floats. A result depends on the values, not on their notation
// (math/predictor.h).
//
// Pure; for one thread. Keeps its memory for the next request.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/trained_model.h"
#include "roles/serve/core/fast_json.h"

namespace disttf::roles {

// The sizes of a tensor, outermost first.
struct Dims {
  static constexpr std::size_t kMaxRank = 6;
  std::array<std::size_t, kMaxRank> sizes{};
  std::size_t rank = 0;

  [[nodiscard]] std::span<const std::size_t> all() const noexcept {
    return std::span(sizes).first(rank);
  }
  // Whether the product of the sizes is `values`.
  [[nodiscard]] bool hold(std::size_t values) const noexcept;
  [[nodiscard]] std::string text() const;  // "[2, 28, 28]"
};

class Rows {
 public:
  // Resets the object for a request to `model`.
  void clear(const TrainedModel& model);

  void add(float value) {
    if (is_bytes_) {
      if (value >= 0 && value <= 255 && value == static_cast<float>(static_cast<int>(value))) {
        pixels_.push_back(static_cast<std::uint8_t>(value));
        return;
      }
      become_numbers();
    }
    numbers_.push_back(value);
  }
  void add(std::span<const std::uint8_t> pixels);
  void add(std::span<const float> numbers);

  [[nodiscard]] std::size_t values() const noexcept {
    return is_bytes_ ? pixels_.size() : numbers_.size();
  }
  // Whether some rows came as bytes: from a file, or as a tensor of bytes.
  [[nodiscard]] bool has_files() const noexcept { return has_files_; }
  // Multiplies all values by 255 (model/predict/input_range.h).
  void scale();

  [[nodiscard]] bool are_bytes() const noexcept { return is_bytes_; }
  [[nodiscard]] std::span<const std::uint8_t> pixels() const noexcept { return pixels_; }
  [[nodiscard]] std::span<const float> numbers() const noexcept { return numbers_; }

 private:
  void become_numbers();

  bool is_bytes_ = false;
  bool has_files_ = false;
  std::vector<std::uint8_t> pixels_;
  std::vector<float> numbers_;
};

// Adds an array of numbers, nested or flat. Throws BadRequest if it is no tensor.
[[nodiscard]] Dims read_tensor(JsonReader& reader, Rows& rows);

// Whether an example may have these sizes: [784], [28, 28] or [28, 28, 1]; for a table [13].
[[nodiscard]] bool is_example(std::span<const std::size_t> sizes, const TrainedModel& model);
// The number of rows in a tensor of these sizes. Throws BadRequest, with `what` ("instances")
// before the sentence.
[[nodiscard]] std::size_t rows_of(const Dims& dims, const TrainedModel& model,
                                  std::string_view what);

// Adds the rows of a file, in a format of `disttf predict`. Returns their number. Throws
// BadRequest.
std::size_t add_file(std::span<const std::uint8_t> file, std::string_view what,
                     const TrainedModel& model, Rows& rows);
// The same in base64.
std::size_t add_base64(std::string_view text, std::string_view what, const TrainedModel& model,
                       Rows& rows);

// The names of a model's one input and one output.
inline constexpr std::string_view kInputName = "inputs";
[[nodiscard]] std::string_view output_name(const TrainedModel& model) noexcept;

}  // namespace disttf::roles
