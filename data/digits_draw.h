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

// The stroke tables of the built-in digits: each digit in several styles.
//
// A style is a sequence of nodes in a unit square, x to the right, y down. A start node lifts the
// pen and begins a new stroke; the pen follows a curve through smooth nodes and turns sharply at
// corners. Constant tables; callable from any thread.
enum class NodeKind : std::uint8_t { kStart, kSmooth, kCorner };

struct StrokeNode {
  float x = 0;
  float y = 0;
  NodeKind kind = NodeKind::kSmooth;
};

using DigitStyle = std::span<const StrokeNode>;

// Returns the styles of a digit, at least two. REQUIRES: label < 10.
[[nodiscard]] std::span<const DigitStyle> digit_styles(std::uint8_t label) noexcept;

}  // namespace disttf::data
