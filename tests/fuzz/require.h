// Checks for fuzz targets: a failed check aborts, and a crash is a finding.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace disttf::fuzz {

inline void require(bool condition) {
  if (!condition) std::abort();
}

// A message for users fits on one line of a log and begins with its subject.
inline void require_sentence(std::string_view sentence, std::string_view begin, std::size_t most) {
  require(sentence.starts_with(begin));
  require(sentence.size() <= most);
  require(std::ranges::all_of(sentence, [](char c) { return c >= 0x20 && c < 0x7F; }));
}

}  // namespace disttf::fuzz
