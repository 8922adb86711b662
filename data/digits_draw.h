// Draws one digit; digits.h makes a data set of them.
//
// Only + - * / sqrt on floats and integers, so the same bits come out on every machine. Pure
// function; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttf::data {

inline constexpr std::size_t kDigitSide = 28;
inline constexpr std::size_t kDigitPixels = kDigitSide * kDigitSide;  // 784
inline constexpr std::size_t kDigitClasses = 10;

// `pixels`: 28x28, 0 is paper, 255 is ink. Everything random about the image follows from
// `random_seed`. REQUIRES: label < 10.
void draw_digit(std::uint8_t label, std::uint64_t random_seed,
                std::span<std::uint8_t, kDigitPixels> pixels);

}  // namespace disttf::data
