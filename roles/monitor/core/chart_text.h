// Curves as text: dots of Braille where a terminal shows them, else letters.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "roles/monitor/core/chart.h"

namespace disttf::roles {

// What a terminal, or whatever else text goes to, can show.
struct TextStyle {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool unicode = false;
  bool colour = false;
};

// Lines of at most `columns` characters, `rows` of them where these suffice: each panel has at
// least four rows for its curves. Curves that share a panel are told apart by their colour, and
// without colours by the character that they are drawn with. Ends with a newline.
[[nodiscard]] std::string text_of(const Chart& chart, const TextStyle& style);

// All values in a row of at most `width` characters, each the mean of its share of them: the lowest
// one low.
[[nodiscard]] std::string sparkline(std::span<const double> values, std::size_t width,
                                    bool unicode);

}  // namespace disttf::roles
