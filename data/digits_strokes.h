// The stroke tables of the built-in digits: each digit in several styles.
//
// A style is a sequence of nodes in a unit square, x to the right, y down. A start node lifts the
// pen and begins a new stroke; the pen follows a curve through smooth nodes and turns sharply at
// corners. Constant tables; callable from any thread.
#pragma once

#include <cstdint>
#include <span>

namespace disttf::data {

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
