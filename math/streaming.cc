#include "math/streaming.h"

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

// Up to the next boundary of a line.
std::size_t floats_before_line(const float* at) noexcept {
  const std::size_t within = reinterpret_cast<std::uintptr_t>(at) / sizeof(float) % kLineFloats;
  return within == 0 ? 0 : kLineFloats - within;
}

}  // namespace

bool streaming_helps() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
}

// The four stores of a line are put together before it leaves the processor: wider registers are
// no faster.
void stream(const float* from, float* to, std::size_t count) noexcept {
  const std::size_t head = std::min(count, floats_before_line(to));
  std::copy_n(from, head, to);
  std::size_t i = head;
  for (; i + kLineFloats <= count; i += kLineFloats) {
    const __m128 a = _mm_loadu_ps(from + i);
    const __m128 b = _mm_loadu_ps(from + i + kVectorFloats);
    const __m128 c = _mm_loadu_ps(from + i + 2 * kVectorFloats);
    const __m128 d = _mm_loadu_ps(from + i + 3 * kVectorFloats);
    _mm_stream_ps(to + i, a);
    _mm_stream_ps(to + i + kVectorFloats, b);
    _mm_stream_ps(to + i + 2 * kVectorFloats, c);
    _mm_stream_ps(to + i + 3 * kVectorFloats, d);
  }
  std::copy_n(from + i, count - i, to + i);
}

void end_streaming() noexcept { _mm_sfence(); }

#else

bool streaming_helps() noexcept { return false; }

void stream(const float* from, float* to, std::size_t count) noexcept {
  std::copy_n(from, count, to);
}

void end_streaming() noexcept {}

#endif

}  // namespace disttf::math
