// Compares secrets.
#pragma once

#include <string_view>

namespace disttf::net {

// Takes equally long for all texts of the same length.
[[nodiscard]] inline bool is_same_secret(std::string_view given, std::string_view secret) noexcept {
  if (given.size() != secret.size()) return false;
  unsigned difference = 0;
  for (std::size_t each = 0; each < secret.size(); ++each) {
    difference |= static_cast<unsigned>(given[each] ^ secret[each]);
  }
  return difference == 0;
}

}  // namespace disttf::net
