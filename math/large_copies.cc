#include "math/large_copies.h"

#include <limits>

// glibc's internal variable: the size from which it uses REP MOVSB. It can be accessed only where
// glibc is linked statically, and is null in a release that has none.
#if defined(__x86_64__)
extern "C" {
// NOLINTNEXTLINE(*-identifier-naming, bugprone-reserved-identifier, cert-*)
[[gnu::weak, gnu::visibility("hidden")]] extern long __x86_rep_movsb_threshold;
}
#endif

namespace disttf::math {
namespace {

#if defined(__x86_64__)
constexpr long kNever = std::numeric_limits<long>::max();

// Null if the C library's choice stays.
[[nodiscard]] long* threshold() noexcept {
  return prefers_vectors() ? &__x86_rep_movsb_threshold : nullptr;
}
#endif

}  // namespace

bool prefers_vectors() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

LargeCopies choose_large_copies() noexcept {
#if defined(__x86_64__)
  if (long* const least = threshold()) *least = kNever;
#endif
  return large_copies();
}

LargeCopies large_copies() noexcept {
#if defined(__x86_64__)
  const long* const least = threshold();
  if (least != nullptr && *least == kNever) return LargeCopies::kByVectors;
#endif
  return LargeCopies::kAsLibcDoes;
}

}  // namespace disttf::math
