// Reads an input as a list of small choices, for targets that simulate a sequence of events.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace disttf::fuzz
