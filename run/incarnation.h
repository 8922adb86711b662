// Identifies and orders the processes of one task: of two processes of a trainer the one with the
// higher incarnation is the newer one, and every ps that sees both agrees, in whatever order they
// come.
//
//  bits 63 to 20  milliseconds since 1970, by the clock of the machine that the process began on
//  bits 19 to 0   random
//
// Clocks differ, and a process may start with a clock that is behind that of its predecessor. So a
// trainer that has just started, and learns from a ps of a higher incarnation than its own, takes
// one above that. Pure functions.
#pragma once

#include <chrono>
#include <cstdint>

namespace disttf::roles {

inline constexpr unsigned kIncarnationRandomBits = 20;

// Only the lowest bits of `random` count.
[[nodiscard]] constexpr std::uint64_t make_incarnation(std::chrono::milliseconds since_1970,
                                                       std::uint64_t random) noexcept {
  const std::uint64_t low = random & ((std::uint64_t{1} << kIncarnationRandomBits) - 1);
  return (static_cast<std::uint64_t>(since_1970.count()) << kIncarnationRandomBits) | low;
}

// Returns `fresh`, the incarnation of a process that begins now, or, if that is not above `other`,
// an equally random one above `other`. (Only an impostor could send an incarnation so high that
// none is above it.)
[[nodiscard]] constexpr std::uint64_t incarnation_above(std::uint64_t other,
                                                        std::uint64_t fresh) noexcept {
  if (fresh > other) {
    return fresh;
  }
  const std::chrono::milliseconds next((other >> kIncarnationRandomBits) + 1);
  return make_incarnation(next, fresh);
}

}  // namespace disttf::roles
