// How this process copies large blocks: memcpy, memmove and std::copy, its own and its libraries'.
//
// glibc before 2.40 copies 2 KB and more by one instruction, REP MOVSB, where the processor says
// that it is fast. AMD's Zen 3 and 4 say so, and take 14 times as long for it where the destination
// begins 1 to 31 bytes behind the source within a page of 4 KB: 318 KB in 116 us and not 8. That
// is no rare case. What malloc maps begins 16 bytes behind a page, shared memory with one.
// (glibc's bug 30994; its later releases do what is done here.)
#pragma once

#include <cstdint>

namespace disttf::math {

enum class LargeCopies : std::uint8_t {
  kAsLibcDoes,  // the processor, the C library or the way of linking is another
  kByVectors,   // by vector registers, as fast wherever both begin
};

// Whether this processor is one whose REP MOVSB is not to be used.
[[nodiscard]] bool prefers_vectors() noexcept;
// Once, before the process has another thread.
LargeCopies choose_large_copies() noexcept;
// What was chosen; before that, what the C library does.
[[nodiscard]] LargeCopies large_copies() noexcept;

}  // namespace disttf::math
