#include "data/own/shown_text.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "text/shown_text.h"

namespace disttf::data {

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 60;
  std::size_t length = std::min(text.size(), kMost);
  const auto is_inside = [&](std::size_t at) {  // inside a UTF-8 character
    return at < text.size() && (static_cast<std::uint8_t>(text[at]) & 0xC0U) == 0x80U;
  };
  // Invalid UTF-8 may contain any number of continuation bytes in sequence, so the search is
  // limited.
  constexpr std::size_t kMostBack = 3;
  for (std::size_t back = 0; back < kMostBack && length > 0 && is_inside(length); ++back) --length;
  // Cut before the escapes are added, so that none is cut in half.
  return shown_text(text.substr(0, length)) + (text.size() > length ? "..." : "");
}

}  // namespace disttf::data
