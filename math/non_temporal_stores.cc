#include "math/non_temporal_stores.h"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace disttf::math {

#if defined(__x86_64__)

namespace {

constexpr std::size_t kLineFloats = 16;
constexpr std::size_t kVectorFloats = 4;

// The number of floats before the next cache line.
std::size_t floats_before_line(const float* at) noexcept {
  const std::size_t within = reinterpret_cast<std::uintptr_t>(at) / sizeof(float) % kLineFloats;
  return within == 0 ? 0 : kLineFloats - within;
}

// The processor combines the four stores of a line before it sends them: wider registers are no
// faster.
template <typename One, typename Vector>
void stream_vectors(float* to, std::size_t count, const One& one, const Vector& vector) noexcept {
  std::size_t i = 0;
  // The head and the tail share their lines with other data, and a non-temporal store is fast only
  // for whole lines, so both use normal stores.
  for (const std::size_t head = std::min(count, floats_before_line(to)); i < head; ++i) {
    to[i] = one(i);
  }
  for (; i + kLineFloats <= count; i += kLineFloats) {
    // All loads come before the stores, so the four stores of a line follow one another.
    const __m128 a = vector(i);
    const __m128 b = vector(i + kVectorFloats);
    const __m128 c = vector(i + 2 * kVectorFloats);
    const __m128 d = vector(i + 3 * kVectorFloats);
    _mm_stream_ps(to + i, a);
    _mm_stream_ps(to + i + kVectorFloats, b);
    _mm_stream_ps(to + i + 2 * kVectorFloats, c);
    _mm_stream_ps(to + i + 3 * kVectorFloats, d);
  }
  for (; i < count; ++i) {
    to[i] = one(i);
  }
}

}  // namespace

bool non_temporal_stores_help() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}

void store_non_temporal(const float* from, float* to, std::size_t count) noexcept {
  stream_vectors(
      to, count, [from](std::size_t i) { return from[i]; },
      [from](std::size_t i) { return _mm_loadu_ps(from + i); });
}

void store_sum_non_temporal(const float* a, const float* b, float* to, std::size_t count) noexcept {
  stream_vectors(
      to, count, [a, b](std::size_t i) { return a[i] + b[i]; },
      [a, b](std::size_t i) { return _mm_add_ps(_mm_loadu_ps(a + i), _mm_loadu_ps(b + i)); });
}

void fence_non_temporal_stores() noexcept { _mm_sfence(); }

#else

bool non_temporal_stores_help() noexcept { return false; }

void store_non_temporal(const float* from, float* to, std::size_t count) noexcept {
  std::copy_n(from, count, to);
}

void store_sum_non_temporal(const float* a, const float* b, float* to, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    to[i] = a[i] + b[i];
  }
}

void fence_non_temporal_stores() noexcept {}

#endif

}  // namespace disttf::math
