// Curves as text: Braille dots if the terminal shows them, else characters.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "run/monitor/core/chart.h"

namespace disttf::roles {

// What a terminal, or another output for text, can show.
struct TextStyle {
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool unicode = false;
  bool colour = false;
};

// Lines of at most `columns` characters; `rows` lines, or more if needed: each panel has at least
// four rows for its curves. Colours distinguish the curves of a panel, or without colours their
// characters. Ends with a newline.
[[nodiscard]] std::string text_of(const Chart& chart, const TextStyle& style);

// All values in a row of at most `width` characters, each the mean of its share; the lowest value
// is the lowest character.
[[nodiscard]] std::string sparkline(std::span<const double> values, std::size_t width,
                                    bool unicode);

}  // namespace disttf::roles
