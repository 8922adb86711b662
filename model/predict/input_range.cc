#include "model/predict/input_range.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace disttf::roles {
namespace {

// Of values that are all 0 or 1, more than 1 % must be 1: a tenth of a drawing is ink, but hardly
// any byte of a dark picture is 1.
constexpr std::size_t kLeastOnesOf = 100;

template <typename Number>
FoundRange found_range(std::span<const Number> numbers) {
  bool has_fractions = false;
  std::size_t ones = 0;
  Number most = 0;
  for (const Number each : numbers) {
    // One such value decides; the rest need not be read.
    if (each < 0 || each > 255) return FoundRange::kOutside;
    most = std::max(most, each);
    ones += each == 1 ? 1U : 0U;
    if constexpr (std::is_floating_point_v<Number>) {
      has_fractions = has_fractions || each != std::floor(each);
    }
  }
  // Fractions up to 1 are no bytes. Only zeros and ones may be either, so the share of ones
  // decides.
  const bool is_unit = most <= 1 && (has_fractions || ones * kLeastOnesOf > numbers.size());
  return is_unit ? FoundRange::kUnit : FoundRange::kByte;
}

}  // namespace

FoundRange range_of(std::span<const float> numbers) { return found_range(numbers); }
FoundRange range_of(std::span<const std::uint8_t> pixels) { return found_range(pixels); }

RangeDecision decide_range(InputRange wanted, FoundRange found, float most, bool are_files) {
  // Files hold bytes by their format, whatever the flag says about numbers.
  const bool is_unit = wanted == InputRange::kUnit && !are_files;
  if (is_unit && (found == FoundRange::kOutside || most > 1)) {
    return {.is_scaled = true,
            .warning =
                "inputs: some values are below 0 or above 1, outside --input_range unit; the "
                "answer is likely to be wrong"};
  }
  if (found == FoundRange::kOutside) {
    return {.warning =
                "inputs: some values are below 0 or above 255; the model expects pixels from 0 to "
                "255, so the answer is likely to be wrong"};
  }
  if (is_unit || (wanted == InputRange::kAuto && found == FoundRange::kUnit)) {
    return {.is_scaled = true};
  }
  if (found == FoundRange::kUnit) {
    return {
        .warning =
            "inputs: all values are from 0 to 1; the model expects pixels from 0 to 255, so the "
            "answer is likely to be wrong (send pixels, or start with --input_range auto or unit)"};
  }
  return {};
}

void scale_to_bytes(std::span<float> numbers) {
  constexpr float kWhite = 255;
  // Files often hold pixels divided by 255. The products differ from whole numbers by rounding.
  constexpr float kRounding = 1e-3F;
  for (float& each : numbers) {
    const float scaled = each * kWhite;
    const float whole = std::round(scaled);
    // Whole numbers take the faster path of bytes, with the result that the bytes themselves give.
    each = std::abs(scaled - whole) <= kRounding ? whole : scaled;
  }
}

}  // namespace disttf::roles
