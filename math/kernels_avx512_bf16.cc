// The products with operands rounded to bfloat16, by AVX-512's instruction for them (VDPBF16PS),
// which AMD has from Zen 4 on. The bits are those of products_bf16.inc.
//
// In each 32-bit lane VDPBF16PS makes two fused multiply-adds one after the other, of the upper
// halves first, each rounded like float32's; denormals are 0, whatever the thread has set. So a
// chain of kBf16Chain steps is half as many instructions, where an upper half has an even step of
// the depth and the lower one the step after it. Where the depth is odd 0 * 0 is added last: that
// changes no sum but -0, which kernels_table.h makes 0 anyway.
//
// As in products_tiles.inc C is cut into tiles of a few rows and vectors. A tile has the sums of
// one chain and what they are added to in registers, for all steps of a piece of the depth. A and B
// are packed first, since they have to be rounded: B a strip of a tile's width at a time, which
// stays in the first-level cache, A as many rows as the second-level cache has room for.
//
// As in kernels_impl.inc every function has internal linkage, and there is no std:: template.
#define DISTTF_ISA avx512_bf16
#include "math/bf16_pairs.inc"
#include "math/kernels_table.h"

namespace disttf::math::avx512_bf16 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kMostVectors = 2;
constexpr std::size_t kMostWidth = kMostVectors * kLanes;
// Of 32 registers the sums and what they are added to take 24.
constexpr std::size_t rows_beside(std::size_t vectors) { return 12 / vectors; }

constexpr std::size_t kChainPairs = kBf16Chain / 2;
constexpr std::size_t kPieceSteps = 256;       // of the depth: 16 KB of B
constexpr std::size_t kPairsOfA = 128 * 1024;  // 512 KB
static_assert(kPieceSteps % kBf16Chain == 0 && kBf16Chain % 2 == 0);
static_assert(kProductScratchFloats >= kPairsOfA + kPieceSteps / 2 * kMostWidth);

// What is `count` numbers long lies so far apart: whole cache lines, and an odd number of them, or
// those that a tile reads at once would push each other out of the first-level cache.
constexpr std::size_t apart(std::size_t count) {
  const std::size_t lines = (count + kLanes - 1) / kLanes;
  return (lines + (lines % 2 == 0 ? 1 : 0)) * kLanes;
}

inline __m512i pair(__m512i upper, __m512i lower) {
  return _mm512_or_si512(_mm512_and_si512(upper, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))),
                         _mm512_srli_epi32(lower, 16));
}

// 16 pairs of what follows each other in memory: the first `count` numbers, then 0.
inline __m512i pairs_along(Seen& seen, const float* from, std::size_t count) {
  const __m512i first = rounded(seen.load(from, first_lanes(count)));
  const __m512i second =
      rounded(seen.load(from + kLanes, first_lanes(count < kLanes ? 0 : count - kLanes)));
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return pair(_mm512_permutex2var_epi32(first, even, second),
              _mm512_permutex2var_epi32(first, odd, second));
}

// Pairs of what lies `stride` apart, each in a lane; the second is 0 where it is not there.
inline __m512i pairs_across(Seen& seen, const float* from, std::size_t stride, bool has_second,
                            __mmask16 lanes) {
  const __m512i first = rounded(seen.load(from, lanes));
  const auto lanes_of_second = has_second ? lanes : first_lanes(0);
  return pair(first, rounded(seen.load(from + stride, lanes_of_second)));
}

// A [rows, steps], packed. Element [i, pair] is at[i * row + pair * pair_apart].
struct PackedA {
  std::uint32_t* at;
  std::size_t row;
  std::size_t pair_apart;

  static PackedA of(std::uint32_t* memory, bool turned, std::size_t rows, std::size_t pairs) {
    return turned ? PackedA{memory, 1, apart(rows)} : PackedA{memory, apart(pairs), 1};
  }
};

// False, here and below: something is not finite.
bool pack_a(Matrix a, std::size_t rows, std::size_t steps, const PackedA& packed) {
  Seen seen;
  if (a.turned) {
    for (std::size_t step = 0; step < steps; step += 2) {
      std::uint32_t* const to = packed.at + step / 2 * packed.pair_apart;
      for (std::size_t i = 0; i < rows; i += kLanes) {
        _mm512_store_si512(to + i, pairs_across(seen, a.from(step, i).at, a.stride,
                                                step + 1 < steps, first_lanes(rows - i)));
      }
    }
  } else {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t step = 0; step < steps; step += 2 * kLanes) {
        _mm512_store_si512(packed.at + i * packed.row + step / 2,
                           pairs_along(seen, a.from(i, step).at, at_most(steps - step, 32)));
      }
    }
  }
  return seen.is_finite();
}

// 16 columns of B, each a line in memory -> strip [pair], a row of which is `width` wide.
void pack_turned(Seen& seen, Matrix b, std::size_t steps, std::size_t columns, std::uint32_t* strip,
                 std::size_t width) {
  alignas(64) std::uint32_t tile[kLanes * kLanes];
  for (std::size_t step = 0; step < steps; step += 2 * kLanes) {
    const std::size_t count = at_most(steps - step, 2 * kLanes);
    for (std::size_t j = 0; j < kLanes; ++j) {
      const std::size_t used = j < columns ? count : 0;
      _mm512_store_si512(tile + j * kLanes, pairs_along(seen, b.from(j, step).at, used));
    }
    transpose(tile);
    for (std::size_t p = 0; p < (count + 1) / 2; ++p) {
      _mm512_store_si512(strip + (step / 2 + p) * width, _mm512_load_si512(tile + p * kLanes));
    }
  }
}

// B [steps, columns], at most kMostWidth wide -> strip [pair, whole vectors].
bool pack_b(Matrix b, std::size_t steps, std::size_t columns, std::uint32_t* strip) {
  Seen seen;
  const std::size_t width = columns <= kLanes ? kLanes : kMostWidth;
  for (std::size_t j = 0; j < columns; j += kLanes) {
    if (b.turned) {
      pack_turned(seen, b.from(j, 0), steps, at_most(columns - j, kLanes), strip + j, width);
      continue;
    }
    for (std::size_t step = 0; step < steps; step += 2) {
      _mm512_store_si512(strip + step / 2 * width + j,
                         pairs_across(seen, b.from(step, j).at, b.stride, step + 1 < steps,
                                      first_lanes(columns - j)));
    }
  }
  return seen.is_finite();
}

// What a tile of C is computed from.
struct TileWork {
  PackedA a;
  const std::uint32_t* strip;
  std::size_t pairs;
  float* c;
  std::size_t c_row;
  const float* start;  // what each row of C starts from; null: 0
  bool goes_on;        // C starts from what it is
  __mmask16 last;      // the lanes of the last vector that C has
};

template <std::size_t kRows, std::size_t kVectors>
void tile(const TileWork& work) {
  const auto lanes = [&](std::size_t j) { return j == kVectors - 1 ? work.last : first_lanes(16); };
  __m512 c[kRows][kVectors];
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < kVectors; ++j) {
      const float* const from = work.goes_on ? work.c + i * work.c_row : work.start;
      c[i][j] = from == nullptr ? _mm512_setzero_ps()
                                : _mm512_maskz_loadu_ps(lanes(j), from + j * kLanes);
    }
  }
  const std::uint32_t* a = work.a.at;
  const std::uint32_t* b = work.strip;
  for (std::size_t left = work.pairs; left != 0;) {
    const std::size_t pairs = at_most(left, kChainPairs);
    left -= pairs;
    __m512 sums[kRows][kVectors];
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (std::size_t j = 0; j < kVectors; ++j) {
        sums[i][j] = _mm512_setzero_ps();
      }
    }
    for (std::size_t p = 0; p < pairs; ++p, a += work.a.pair_apart, b += kVectors * kLanes) {
      __m512i row_of_b[kVectors];
#pragma GCC unroll 2
      for (std::size_t j = 0; j < kVectors; ++j) {
        row_of_b[j] = _mm512_load_si512(b + j * kLanes);
      }
#pragma GCC unroll 12
      for (std::size_t i = 0; i < kRows; ++i) {
        const __m512i factor = _mm512_set1_epi32(static_cast<int>(a[i * work.a.row]));
#pragma GCC unroll 2
        for (std::size_t j = 0; j < kVectors; ++j) {
          sums[i][j] = _mm512_dpbf16_ps(sums[i][j], reinterpret_cast<__m512bh>(factor),
                                        reinterpret_cast<__m512bh>(row_of_b[j]));
        }
      }
    }
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (std::size_t j = 0; j < kVectors; ++j) {
        // The sum of a chain may be -0: plus 0 it is 0.
        c[i][j] = _mm512_add_ps(c[i][j], _mm512_add_ps(sums[i][j], _mm512_setzero_ps()));
      }
    }
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t j = 0; j < kVectors; ++j) {
      _mm512_mask_storeu_ps(work.c + i * work.c_row + j * kLanes, lanes(j), c[i][j]);
    }
  }
}

// Tiles of kRows rows for as long as they fit; returns the rows that are left.
template <std::size_t kRows, std::size_t kVectors>
inline std::size_t tiles(TileWork& work, std::size_t rows) {
  for (; rows >= kRows; rows -= kRows) {
    tile<kRows, kVectors>(work);
    work.a.at += kRows * work.a.row;
    work.c += kRows * work.c_row;
  }
  return rows;
}

template <std::size_t kVectors>
void all_tiles(TileWork work, std::size_t rows) {
  rows = tiles<rows_beside(kVectors), kVectors>(work, rows);
  rows = tiles<4, kVectors>(work, rows);
  rows = tiles<2, kVectors>(work, rows);
  tiles<1, kVectors>(work, rows);
}

// All columns of `rows` rows of C, whose A is packed; `work` lacks what a strip has.
bool multiply_strips(TileWork work, Matrix b, std::size_t rows, std::size_t columns,
                     std::size_t steps, std::uint32_t* strip) {
  float* const c = work.c;
  const float* const start = work.start;
  work.strip = strip;
  for (std::size_t column = 0; column < columns; column += kMostWidth) {
    const std::size_t used = at_most(columns - column, kMostWidth);
    if (!pack_b(b.turned ? b.from(column, 0) : b.from(0, column), steps, used, strip)) {
      return false;
    }
    work.c = c + column;
    work.start = start == nullptr ? nullptr : start + column;
    work.last = first_lanes(used <= kLanes ? used : used - kLanes);
    used <= kLanes ? all_tiles<1>(work, rows) : all_tiles<2>(work, rows);
  }
  return true;
}

// Rows of A that are packed at once: whole tiles.
std::size_t rows_at_once(bool turned, std::size_t pairs) {
  const std::size_t rows = turned ? kPairsOfA / pairs - 2 * kLanes : kPairsOfA / apart(pairs);
  return rows - rows % rows_beside(1);
}

// False: C is not computed.
bool any_product(Matrix a, Matrix b, float* c, ProductShape shape, const float* start,
                 float* scratch) {
  if (shape.depth == 0) {
    return false;
  }
  auto* const memory = reinterpret_cast<std::uint32_t*>(scratch);
  for (std::size_t step = 0; step < shape.depth; step += kPieceSteps) {
    const std::size_t steps = at_most(shape.depth - step, kPieceSteps);
    const std::size_t pairs = (steps + 1) / 2;
    const std::size_t most_rows = rows_at_once(a.turned, pairs);
    for (std::size_t row = 0; row < shape.rows; row += most_rows) {
      const std::size_t rows = at_most(shape.rows - row, most_rows);
      const PackedA packed = PackedA::of(memory, a.turned, rows, pairs);
      if (!pack_a(a.turned ? a.from(step, row) : a.from(row, step), rows, steps, packed)) {
        return false;
      }
      const TileWork work{.a = packed,
                          .strip = nullptr,
                          .pairs = pairs,
                          .c = c + row * shape.columns,
                          .c_row = shape.columns,
                          .start = start,
                          .goes_on = step > 0,
                          .last = 0};
      if (!multiply_strips(work, b.turned ? b.from(0, step) : b.from(step, 0), rows, shape.columns,
                           steps, memory + kPairsOfA)) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace
}  // namespace disttf::math::avx512_bf16

#include "math/bf16_table.inc"
