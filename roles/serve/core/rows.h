// The rows that a model is asked about, as they are read: bytes while all values are whole ones
// from 0 to 255 and the model takes images, else numbers. Whatever a value is written as, an
// answer's bits depend on the value alone (math/predictor.h).
//
// Pure; one thread. Memory is kept from one request to the next.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roles/model/core/trained_model.h"
#include "roles/serve/core/json_reader.h"

namespace disttf::roles {

// The sizes of a tensor, the outermost first.
struct Dims {
  static constexpr std::size_t kMaxRank = 6;
  std::array<std::size_t, kMaxRank> sizes{};
  std::size_t rank = 0;

  [[nodiscard]] std::span<const std::size_t> all() const noexcept {
    return std::span(sizes).first(rank);
  }
  // Whether their product is `values`.
  [[nodiscard]] bool hold(std::size_t values) const noexcept;
  [[nodiscard]] std::string text() const;  // "[2, 28, 28]"
};

class Rows {
 public:
  // For a request to `model`.
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
  // Whether some came as bytes: from a file, or as such a tensor.
  [[nodiscard]] bool has_files() const noexcept { return has_files_; }
  // Multiplies all by 255 (roles/predict/core/input_range.h).
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

// Adds an array of numbers, nested or not. Throws BadRequest where it is no tensor.
[[nodiscard]] Dims read_tensor(JsonReader& reader, Rows& rows);

// Whether an example may have these sizes: [784], [28, 28] or [28, 28, 1]; a table's [13].
[[nodiscard]] bool is_example(std::span<const std::size_t> sizes, const TrainedModel& model);
// How many rows such a tensor holds. Throws BadRequest, `what` ("instances") before the sentence.
[[nodiscard]] std::size_t rows_of(const Dims& dims, const TrainedModel& model,
                                  std::string_view what);

// A file, as `disttf predict` takes it. Returns its rows. Throws BadRequest.
std::size_t add_file(std::span<const std::uint8_t> file, std::string_view what,
                     const TrainedModel& model, Rows& rows);
// The same in base64.
std::size_t add_base64(std::string_view text, std::string_view what, const TrainedModel& model,
                       Rows& rows);

// What the one input and the one output of a model are called.
inline constexpr std::string_view kInputName = "inputs";
[[nodiscard]] std::string_view output_name(const TrainedModel& model) noexcept;

}  // namespace disttf::roles
