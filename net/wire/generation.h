// The generation of a message: which state of the run it is about. A chief gives each state that it
// sets all ps to a new generation, at the beginning and after each loss of a ps. The higher of two
// is newer; messages of an older one are rejected.
//
//   bits 63 to 12  the begin of the incarnation of the chief that made it
//   bits 11 to 0   its number: one above that of the newest generation known to that chief
//
// The chief's incarnation comes first. So two chiefs that are unaware of each other, one of which
// has been replaced, never make the same generation for two states, and those of the newer chief
// are higher. 0: no state. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace disttf::net {

using Generation = std::uint64_t;

inline constexpr unsigned kGenerationNumberBits = 12;

// The number for messages and logs.
[[nodiscard]] constexpr std::uint64_t number_of(Generation generation) noexcept {
  return generation & ((Generation{1} << kGenerationNumberBits) - 1);
}

// The next generation of the chief with this incarnation; `newest` is the newest that it knows.
// (After 4095 of them the number restarts and the upper part grows.)
[[nodiscard]] constexpr Generation generation_after(Generation newest,
                                                    std::uint64_t chief) noexcept {
  const Generation name = std::max(newest >> kGenerationNumberBits, chief >> kGenerationNumberBits);
  return (name << kGenerationNumberBits) + number_of(newest) + 1;
}

}  // namespace disttf::net
