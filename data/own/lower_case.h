// Case-insensitive comparison of names.
#pragma once

#include <algorithm>
#include <string>

namespace disttf::data {

// Returns `text` with ASCII letters in lower case.
[[nodiscard]] inline std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

}  // namespace disttf::data
