// How this process copies large blocks with memcpy, memmove and std::copy, including its libraries.
//
// glibc before 2.40 copies 2 KB and more with one instruction, REP MOVSB, if the processor reports
// that it is fast. AMD's Zen 3 and 4 report that, but take 14 times as long where the destination
// begins 1 to 31 bytes behind the source within a 4 KB page: 318 KB in 116 us instead of 8 us. That
// is common: memory that malloc maps begins 16 bytes behind a page, and shared memory begins on
// one. (glibc bug 30994; its later releases do what this file does.)
#pragma once

#include <cstdint>

namespace disttf::math {

enum class LargeCopies : std::uint8_t {
  kAsLibcDoes,  // not this processor, C library or kind of linking
  kByVectors,   // with vector registers: fast at any alignment
};

// Whether this is a processor on which REP MOVSB is to be avoided.
[[nodiscard]] bool prefers_vectors() noexcept;
// Call once, before the process has another thread.
LargeCopies choose_large_copies() noexcept;
// The choice; before that, what the C library does.
[[nodiscard]] LargeCopies large_copies() noexcept;

}  // namespace disttf::math
