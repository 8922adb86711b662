// Reads an input as a list of small choices, for targets that simulate a sequence of events.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

namespace disttf::fuzz {

// The rest of an input. After its end, all values are 0.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool is_empty() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const std::uint8_t first = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return first;
  }
  // One byte for small numbers; after 0xFF, eight bytes.
  std::uint64_t number() {
    const std::uint8_t small = byte();
    if (small != 0xFF) return small;
    std::uint64_t all = 0;
    for (int each = 0; each < 8; ++each) all = all << 8U | byte();
    return all;
  }

 private:
  std::span<const std::uint8_t> bytes_;
};

// Checks for fuzz targets: a failed check aborts, and a crash is a finding.
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
