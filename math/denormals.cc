#include "math/denormals.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace disttf::math {

void flush_denormals() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kFlushToZero = 0x8000;       // results (MXCSR.FTZ)
  constexpr unsigned kDenormalsAreZero = 0x0040;  // operands (MXCSR.DAZ)
  _mm_setcsr(_mm_getcsr() | kFlushToZero | kDenormalsAreZero);
#elif defined(__aarch64__)
  constexpr std::uint64_t kFlushToZero = std::uint64_t{1} << 24U;  // both (FPCR.FZ)
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  asm volatile("msr fpcr, %0" : : "r"(control | kFlushToZero));
#endif
}

}  // namespace disttf::math
