// Which state of the run a message is about: a chief gives the state that it sets all ps to, at the
// beginning and after each loss of one, a generation of its own. Of two the higher one is newer,
// and what is about an older one is refused.
//
//   bits 63 to 12  the beginning of the incarnation of the chief that made it
//   bits 11 to 0   its number: one above that of the newest which that chief knew of
//
// With the chief's name in front, two chiefs that do not know of each other, of which one has been
// replaced, never make the same generation of two states, and those of the newer one are above.
// 0: no state. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>

namespace disttf::net {

using Generation = std::uint64_t;

inline constexpr unsigned kGenerationNumberBits = 12;

// What messages call it.
[[nodiscard]] constexpr std::uint64_t number_of(Generation generation) noexcept {
  return generation & ((Generation{1} << kGenerationNumberBits) - 1);
}

// The next one that the chief of this incarnation makes, where `newest` is the newest it knows of.
// (After 4095 of them the number begins again, above.)
[[nodiscard]] constexpr Generation generation_after(Generation newest,
                                                    std::uint64_t chief) noexcept {
  const Generation name = std::max(newest >> kGenerationNumberBits, chief >> kGenerationNumberBits);
  return (name << kGenerationNumberBits) + number_of(newest) + 1;
}

}  // namespace disttf::net
