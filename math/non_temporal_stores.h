// Non-temporal stores, which bypass the caches: for numbers that other processors read before this
// one does.
//
// An ordinary store first fetches its cache line and invalidates it in all other processors. Where
// others read the same memory repeatedly, as trainers read a ps's parameters, each written line
// costs such a message and its answer. An AMD Zen 4 took 23 us for an update of 79 616 parameters
// by adam with non-temporal stores and 95 us without, where writer and reader share a third-level
// cache; 28 and 350 us where they do not. The writer itself later
// finds the numbers in memory and takes 8 us instead of 4 us to read them all.
//
// The numbers are the same. Callable from any thread.
#pragma once

#include <cstddef>

namespace disttf::math {

// Whether measurements have shown a gain on this kind of processor: AMD's. (An Intel Emerald Rapids
// has none: docs/performance.md.)
[[nodiscard]] bool non_temporal_stores_help() noexcept;

// to[i] = from[i], with non-temporal stores for whole cache lines of `to` and ordinary ones at both
// ends. Fastest if both begin on a 64-byte boundary. They do not overlap.
// fence_non_temporal_stores() has to follow before another thread is notified that the numbers are
// there.
void store_non_temporal(const float* from, float* to, std::size_t count) noexcept;
// The same for to[i] = a[i] + b[i].
void store_sum_non_temporal(const float* a, const float* b, float* to, std::size_t count) noexcept;
// Orders this thread's non-temporal stores before its later stores.
void fence_non_temporal_stores() noexcept;

}  // namespace disttf::math
