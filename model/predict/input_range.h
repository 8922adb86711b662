// Detects whether the numbers sent to an image model are pixels from 0 to 255, as it expects, or
// already divided by 255, as clients of other models send them.
//
// A model of disttf divides by 255 itself (math/predictor.h), so the latter look almost black to it
// and get a wrong answer. Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/trained_model.h"

namespace disttf::roles {

// The value of --input_range: how to interpret the numbers.
enum class InputRange : std::uint8_t {
  kByte,  // 0 to 255, with a warning where the numbers look different
  kUnit,  // 0 to 1: multiplied by 255
  kAuto,  // whichever they look like
};

// What the numbers of a request look like.
enum class FoundRange : std::uint8_t {
  kByte,     // consistent with 0 to 255; also if all are 0
  kUnit,     // all from 0 to 1, with fractions; or all 0 and 1, more than 1 % of them 1
  kOutside,  // some below 0 or above 255: scaled in another way
};
[[nodiscard]] FoundRange range_of(std::span<const float> numbers);
[[nodiscard]] FoundRange range_of(std::span<const std::uint8_t> pixels);

// How to treat the numbers.
struct RangeDecision {
  bool is_scaled = false;         // multiply them by 255
  std::string_view warning = {};  // a sentence; empty: none
};
// `are_files`: pixels of PNG, JPEG or IDX files or arrays of bytes, to which --input_range unit
// does not apply. `most`: the largest value.
[[nodiscard]] RangeDecision decide_range(InputRange wanted, FoundRange found, float most,
                                         bool are_files);

// Multiplies by 255 and rounds what is close to a whole number, so that the answer is bit-identical
// to the one for bytes.
void scale_to_bytes(std::span<float> numbers);

}  // namespace disttf::roles
