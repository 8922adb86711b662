// Names that are known in any case.
#pragma once

#include <algorithm>
#include <string>

namespace disttf::data {

// In small letters, of ASCII.
[[nodiscard]] inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace disttf::data
