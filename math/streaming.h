// Streaming stores: past the caches, for numbers that other processors read before this one does.
//
// An ordinary store fetches its cache line first, and takes it away from every processor that has
// it. Where others read the same memory again and again, as trainers do a ps's parameters, each
// line that is written costs such a message and its answer. An AMD Zen 4 took 23 us for an update
// of 79 616 parameters by adam with streaming stores and 95 without, where writer and reader share
// a third-level cache, 28 and 350 where they do not. The writer finds the numbers in memory, and
// takes 8 us and not 4 to read them all.
//
// The numbers are the same. Callable from any thread.
#pragma once

#include <cstddef>

namespace disttf::math {

// Whether this processor is one of those for which it has been measured that it helps: AMD's. (On
// an Intel Emerald Rapids it does not: docs/performance.md.)
[[nodiscard]] bool streaming_helps() noexcept;

// to[i] = from[i]; whole cache lines of `to` by streaming stores, what is left at either end by
// ordinary ones. Fastest where both begin on a boundary of 64 bytes. They do not overlap.
// end_streaming() is to follow before another thread is told that the numbers are there.
void stream(const float* from, float* to, std::size_t count) noexcept;
// The same of to[i] = a[i] + b[i].
void stream_sum(const float* a, const float* b, float* to, std::size_t count) noexcept;
// What this thread has streamed is seen before what it stores from here on.
void end_streaming() noexcept;

}  // namespace disttf::math
