#include "data/own/hold_out.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace disttf::data {
namespace {

// Returns how many rows of the first `groups` groups belong to a part with a share of `share`.
std::uint64_t rows_until(std::uint64_t groups, double share) {
  // A tenth of 20 rows must be 2, even if the product is slightly smaller in floating point.
  constexpr double kTolerance = 1e-9;
  return static_cast<std::uint64_t>(
      std::floor(static_cast<double>(groups * HoldOut::kGroupRows) * share + kTolerance));
}

std::size_t rows_of(std::uint64_t group, double share) {
  // Differences of rounded totals: a group's error is made up for by the next, so the share is
  // right over the whole file.
  return static_cast<std::size_t>(rows_until(group + 1, share) - rows_until(group, share));
}

}  // namespace

const char* part_name(Part part) noexcept {
  constexpr std::array<const char*, kParts> kNames = {"train", "validation", "test"};
  return kNames.at(static_cast<std::size_t>(part));
}

std::optional<Part> part_from_word(std::string_view word) noexcept {
  if (word == "train") return Part::kTrain;
  if (word == "test") return Part::kTest;
  if (word == "val" || word == "valid" || word == "validation") return Part::kValidation;
  return std::nullopt;
}

Part HoldOut::part_of(std::uint64_t row) {
  const std::uint64_t group = row / kGroupRows;
  // Rows are asked for in order, so one group is enough to remember.
  if (group != group_) {
    draw(group);
    group_ = group;
  }
  return parts_[row % kGroupRows];
}

void HoldOut::draw(std::uint64_t group) {
  std::array<std::uint32_t, kGroupRows> order{};
  // A fixed seed: the parts of a file are the same in every run, whatever its seed.
  permute(order, /*seed=*/0, purpose_, group, random_bits_);
  const std::size_t validation = rows_of(group, shares_.validation);
  // If both counts are rounded up, the group may have too few rows.
  const std::size_t test = std::min(rows_of(group, shares_.test), kGroupRows - validation);
  parts_.fill(Part::kTrain);
  for (std::size_t i = 0; i < validation + test; ++i) {
    parts_[order[i]] = i < validation ? Part::kValidation : Part::kTest;
  }
}

}  // namespace disttf::data
