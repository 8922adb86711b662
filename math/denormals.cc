#include "math/denormals.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace disttf::math {
namespace {

#if defined(__x86_64__)
// MXCSR.FTZ for results, and MXCSR.DAZ for operands.
constexpr std::uint64_t kFlush = 0x8000 | 0x0040;

std::uint64_t control() noexcept { return _mm_getcsr(); }
void set_control(std::uint64_t bits) noexcept { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlush = std::uint64_t{1} << 24U;  // FPCR.FZ, for both

std::uint64_t control() noexcept {
  std::uint64_t bits = 0;
  asm volatile("mrs %0, fpcr" : "=r"(bits));
  return bits;
}
void set_control(std::uint64_t bits) noexcept { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr std::uint64_t kFlush = 0;

std::uint64_t control() noexcept { return 0; }
void set_control(std::uint64_t /*bits*/) noexcept {}
#endif

}  // namespace

void flush_denormals() noexcept { set_control(control() | kFlush); }

FlushedDenormals::FlushedDenormals() noexcept : before_(control()) { flush_denormals(); }
// The mode is a property of the thread, so it is restored for the thread's other work.
FlushedDenormals::~FlushedDenormals() { set_control(before_); }

}  // namespace disttf::math
