// Comparing what somebody says with what he should.
#pragma once

#include <string_view>

namespace disttf::net {

// Takes as long for a wrong text as for the right one of the same length.
[[nodiscard]] inline bool is_same_secret(std::string_view given, std::string_view secret) noexcept {
  if (given.size() != secret.size()) return false;
  unsigned difference = 0;
  for (std::size_t each = 0; each < secret.size(); ++each) {
    difference |= static_cast<unsigned>(given[each] ^ secret[each]);
  }
  return difference == 0;
}

}  // namespace disttf::net
