// Decides which rows of a file are held out of training: of every 20 consecutive rows the same
// number, drawn at random. A file that is sorted by class or date therefore contributes evenly to
// each part. The choice depends only on the row number, so every conversion of a file gives the
// same parts.
//
// Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "data/sampler.h"

namespace disttf::data {

enum class Part : std::uint8_t { kTrain, kValidation, kTest };
inline constexpr std::size_t kParts = 3;
[[nodiscard]] const char* part_name(Part part) noexcept;  // "train", "validation", "test"
// Returns the part that a lower-case word means, including "val" and "valid". None: not a part.
[[nodiscard]] std::optional<Part> part_from_word(std::string_view word) noexcept;

// Shares of all rows; their sum is below 1.
struct HeldOut {
  double validation = 0.1;
  double test = 0.1;
};

class HoldOut {
 public:
  static constexpr std::uint64_t kGroupRows = 20;

  // `purpose`: math::Purpose::kHoldOut.
  HoldOut(const HeldOut& shares, std::uint32_t purpose, RandomBits random_bits) noexcept
      : shares_(shares), purpose_(purpose), random_bits_(random_bits) {}

  // Returns the part of row `row`, counted from 0. Fast for ascending rows.
  [[nodiscard]] Part part_of(std::uint64_t row);

 private:
  void draw(std::uint64_t group);

  HeldOut shares_;
  std::uint32_t purpose_;
  RandomBits random_bits_;
  std::uint64_t group_ = UINT64_MAX;  // the group that `parts_` describes
  std::array<Part, kGroupRows> parts_{};
};

}  // namespace disttf::data
