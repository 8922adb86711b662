// Numbers in a sentence.
#pragma once

#include <array>
#include <cstdio>
#include <string>

namespace disttf::roles {

// What std::printf() would print; cut to 511 bytes.
template <typename... Values>
[[nodiscard]] std::string format(const char* pattern, Values... values) {
  std::array<char, 512> text{};
  std::snprintf(text.data(), text.size(), pattern, values...);
  return text.data();
}

}  // namespace disttf::roles
