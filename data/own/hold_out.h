// Which rows of a file are not trained on: of each 20 that follow each other the same number, drawn
// at random, so that a file which is sorted by class or date gives a part of everything. A function
// of the row's number alone: whoever converts the same file gets the same parts.
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
// Which one people mean by a word in small letters: "val" and "valid" as well. None: no part.
[[nodiscard]] std::optional<Part> part_from_word(std::string_view word) noexcept;

// Of all rows; both together below 1.
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

  // Of row `row`, from 0. Quick for rows in their order.
  [[nodiscard]] Part part_of(std::uint64_t row);

 private:
  void draw(std::uint64_t group);

  HeldOut shares_;
  std::uint32_t purpose_;
  RandomBits random_bits_;
  std::uint64_t group_ = UINT64_MAX;  // that `parts_` is of
  std::array<Part, kGroupRows> parts_{};
};

}  // namespace disttf::data
