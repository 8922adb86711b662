#include "math/products_trial.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

#include "math/aligned.h"
#include "math/denormals.h"

namespace disttf::math {
namespace {

// Odd in all directions: partial tiles, vectors, chains and pairs.
constexpr ProductShape kShape{.rows = 19, .columns = 37, .depth = 51};

// Numbers with exponents around those whose products are the smallest that there are, or with
// `are_wide` far apart, so that any lost bit of a sum is visible in the result.
AlignedVector numbers(std::size_t count, std::uint32_t seed, bool are_wide) {
  AlignedVector values(count);
  for (float& value : values.span()) {
    seed = seed * 1664525U + 1013904223U;
    const std::uint32_t exponent = are_wide ? 90U + (seed >> 9U) % 90U : 56U + (seed >> 9U) % 12U;
    value = std::bit_cast<float>((seed & 0x80000000U) | exponent << 23U | (seed >> 4U & 0x7FFFFFU));
  }
  return values;
}

// C by each of the products in sequence.
AlignedVector multiply(const Products& products, bool are_wide) {
  const AlignedVector a = numbers(kShape.rows * kShape.depth, 1, are_wide);
  const AlignedVector b = numbers(kShape.depth * kShape.columns, 2, are_wide);
  AlignedVector scratch(kProductScratchFloats);
  AlignedVector c(3 * kShape.rows * kShape.columns);
  float* to = c.data();
  // The start values are the first row of `b`: any numbers do, as long as they are not 0.
  products.product(a.data(), b.data(), to, kShape, b.data(), scratch.data());
  to += kShape.rows * kShape.columns;
  products.product_at(a.data(), b.data(), to, kShape, scratch.data());
  to += kShape.rows * kShape.columns;
  products.product_bt(a.data(), b.data(), to, kShape, scratch.data());
  return c;
}

}  // namespace

bool are_bit_identical(const Products& a, const Products& b) noexcept {
  // VDPBF16PS always flushes denormals; the other products do so only in this mode, in which
  // training runs as well.
  const FlushedDenormals flushed;
  try {
    for (const bool are_wide : {false, true}) {
      const AlignedVector by_a = multiply(a, are_wide);
      const AlignedVector by_b = multiply(b, are_wide);
      if (std::memcmp(by_a.data(), by_b.data(), by_a.span().size_bytes()) != 0) {
        return false;
      }
    }
    return true;
    // Without memory for the trial the slower products are used, which are right in any case.
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace disttf::math
