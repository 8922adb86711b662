// Whether the numbers that an image model is asked about are pixels from 0 to 255, which it takes,
// or were divided by 255 before they were sent, as clients of other models do.
//
// A model of disttf divides by 255 itself (math/predictor.h), so the latter are all but black to
// it: they get an answer, and a wrong one. Pure functions; callable from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// What numbers are taken for.
enum class InputRange : std::uint8_t {
  kByte,  // 0 to 255, with a warning where they do not look like it
  kUnit,  // 0 to 1: multiplied by 255
  kAuto,  // the one that they look like
};

// What the numbers of one request look like.
enum class FoundRange : std::uint8_t {
  kByte,     // nothing speaks against 0 to 255; so are numbers that are all 0
  kUnit,     // all from 0 to 1, with fractions; or all 0 and 1, more than 1 % of them 1
  kOutside,  // some below 0 or above 255: centred or scaled in another way
};
[[nodiscard]] FoundRange range_of(std::span<const float> numbers);
[[nodiscard]] FoundRange range_of(std::span<const std::uint8_t> pixels);

// What becomes of them.
struct RangeDecision {
  bool is_scaled = false;         // they are multiplied by 255
  std::string_view warning = {};  // a sentence; empty: there is none
};
// `are_files`: pixels of PNG, JPEG or IDX files or arrays of bytes, which --input_range unit is not
// of. `most`: the largest value.
[[nodiscard]] RangeDecision decide_range(InputRange wanted, FoundRange found, float most,
                                         bool are_files);

// Multiplies by 255; what is all but a whole number becomes that, so that the answer has the bits
// that it has for the bytes.
void scale_to_bytes(std::span<float> numbers);

}  // namespace disttf::roles
