// Draws one digit; digits.h generates a data set of them.
//
// Uses only + - * / sqrt on floats and integers, so the result is bit-identical on every machine.
// Pure function; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttf::data {

inline constexpr std::size_t kDigitSide = 28;
inline constexpr std::size_t kDigitPixels = kDigitSide * kDigitSide;  // 784
inline constexpr std::size_t kDigitClasses = 10;

// Draws one digit into `pixels`, 28x28, where 0 is paper and 255 is ink. `random_seed` determines
// everything random about the image. REQUIRES: label < 10.
void draw_digit(std::uint8_t label, std::uint64_t random_seed,
                std::span<std::uint8_t, kDigitPixels> pixels);

}  // namespace disttf::data
