// The products with operands rounded to bfloat16, with AVX-512's instruction for them (VDPBF16PS),
// which AMD has from Zen 4 on. Bit-identical to products_bf16.inc.
//
// In each 32-bit lane VDPBF16PS computes two fused multiply-adds in sequence, the upper halves
// first, each rounded like float32's; denormals are 0, whatever mode the thread has set. So a chain
// of kBf16Chain steps takes half as many instructions, if an upper half has an even step of the
// depth and the lower one the step after it. For an odd depth 0 * 0 is added last: that changes no
// sum but -0, which kernels_table.h makes 0 anyway.
//
// As in products_tiles.inc C is split into tiles of a few rows and vectors. A tile keeps the sums
// of one chain, and the values to which they are added, in registers for all steps of a piece of
// the depth. A and B are packed first, because they have to be rounded: B a strip of a tile's width
// at a time, which stays in the first-level cache, and as many rows of A as fit into the
// second-level cache.
//
// As in kernels_impl.inc every function has internal linkage, and no std:: template is used.
#define DISTTF_ISA avx512_bf16
#include "math/bf16_pairs.inc"
#include "math/kernels_table.h"

namespace disttf::math::avx512_bf16 {
namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kMostVectors = 2;
constexpr std::size_t kMostWidth = kMostVectors * kLanes;
// The sums, and the values to which they are added, take 24 of 32 registers.
constexpr std::size_t rows_beside(std::size_t vectors) { return 12 / vectors; }

constexpr std::size_t kChainPairs = kBf16Chain / 2;
constexpr std::size_t kPieceSteps = 256;       // of the depth: 16 KB of B
constexpr std::size_t kPairsOfA = 128 * 1024;  // 512 KB
// A piece of the depth holds whole chains. Otherwise a chain would be cut at a piece's end, and its
// sum would be rounded once more than in products_bf16.inc.
static_assert(kPieceSteps % kBf16Chain == 0 && kBf16Chain % 2 == 0);
static_assert(kProductScratchFloats >= kPairsOfA + kPieceSteps / 2 * kMostWidth);

// The distance between rows of `count` numbers: an odd number of whole cache lines; otherwise those
// that a tile reads at once would evict each other from the first-level cache.
constexpr std::size_t apart(std::size_t count) {
  const std::size_t lines = (count + kLanes - 1) / kLanes;
  return (lines + (lines % 2 == 0 ? 1 : 0)) * kLanes;
}

inline __m512i pair(__m512i upper, __m512i lower) {
  return _mm512_or_si512(_mm512_and_si512(upper, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))),
                         _mm512_srli_epi32(lower, 16));
}

// 16 pairs of adjacent numbers in memory: the first `count` numbers, then 0.
inline __m512i pairs_along(Seen& seen, const float* from, std::size_t count) {
  const __m512i first = rounded(seen.load(from, first_lanes(count)));
  const __m512i second =
      rounded(seen.load(from + kLanes, first_lanes(count < kLanes ? 0 : count - kLanes)));
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
  return pair(_mm512_permutex2var_epi32(first, even, second),
              _mm512_permutex2var_epi32(first, odd, second));
}

// Pairs of numbers that are `stride` apart, each in a lane; the second is 0 if it does not exist.
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
    // A keeps its order in memory; tile() reads both orders by these two distances.
    return turned ? PackedA{memory, 1, apart(rows)} : PackedA{memory, apart(pairs), 1};
  }
};

// False, here and below: a number is not finite.
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

// Packs 16 columns of B, each a line in memory, into strip [pair], whose rows are `width` wide.
void pack_turned(Seen& seen, Matrix b, std::size_t steps, std::size_t columns, std::uint32_t* strip,
                 std::size_t width) {
  // Loads along the lines of memory and transposes in the cache, because a strip needs the numbers
  // of 16 different lines side by side.
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

// Packs B [steps, columns], at most kMostWidth wide, into strip [pair, whole vectors].
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

// The inputs of a tile of C.
struct TileWork {
  PackedA a;
  const std::uint32_t* strip;
  std::size_t pairs;
  float* c;
  std::size_t c_row;
  const float* start;  // start of each row of C; null: 0
  bool goes_on;        // C starts from its present value
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
      // After the first piece of the depth C holds the sums of the pieces before it.
      const float* const from = work.goes_on ? work.c + i * work.c_row : work.start;
      c[i][j] = from == nullptr ? _mm512_setzero_ps()
                                : _mm512_maskz_loadu_ps(lanes(j), from + j * kLanes);
    }
  }
  const std::uint32_t* a = work.a.at;
  const std::uint32_t* b = work.strip;
  for (std::size_t left = work.pairs; left != 0;) {
    // One chain: its own sum begins at 0 and is added to C at its end, in the order of
    // products_bf16.inc.
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
        // A chain's sum may be -0: adding 0 makes it 0.
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

// Tiles of kRows rows as long as they fit; returns the remaining rows.
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
  // The remaining rows take smaller tiles. Each row of C has its own sums, so the tile's height
  // changes no bit.
  rows = tiles<4, kVectors>(work, rows);
  rows = tiles<2, kVectors>(work, rows);
  tiles<1, kVectors>(work, rows);
}

// All columns of `rows` rows of C, whose A is packed; `work` lacks the strip's part.
bool multiply_strips(TileWork work, Matrix b, std::size_t rows, std::size_t columns,
                     std::size_t steps, std::uint32_t* strip) {
  float* const c = work.c;
  const float* const start = work.start;
  work.strip = strip;
  for (std::size_t column = 0; column < columns; column += kMostWidth) {
    const std::size_t used = at_most(columns - column, kMostWidth);
    // The strip of B is packed once for all packed rows of A. B is thus packed again only for
    // matrices A that exceed the second-level cache.
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
  // apart(rows) exceeds `rows` by fewer than two vectors, so a turned A with this many rows fits.
  const std::size_t rows = turned ? kPairsOfA / pairs - 2 * kLanes : kPairsOfA / apart(pairs);
  return rows - rows % rows_beside(1);
}

// Returns false if C is not computed.
bool any_product(Matrix a, Matrix b, float* c, ProductShape shape, const float* start,
                 float* scratch) {
  // Without a step no tile would write C. The float32 path writes the start values.
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
      // A false result here or below can leave C partly written. The caller then computes all of C
      // by float32's instructions, so no value of it is used.
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
