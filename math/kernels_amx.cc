// The products with operands rounded to bfloat16, on the tile unit of newer Intel CPUs (AMX-BF16):
// a register is a tile of 1 KB, and one instruction multiplies 16 x 32 by 32 x 16 numbers.
// Bit-identical to products_bf16.inc.
//
// TDPBF16PS adds to each number of C the sum of two chains of fused multiply-adds, each from 0 and
// of 16 steps: one over the lower, one over the upper halves of the 32-bit lanes that hold pairs of
// bfloat16 numbers. Denormals are 0, whatever mode the thread has set. Here the lower halves are
// the first 16 steps of a block of the depth, the upper ones the other 16. A is stored in two
// tiles, in each of which the other half is 0, so that one chain is added after the other. Such a
// zero must not be multiplied by an infinity: other code computes those products.
//
// As in kernels_impl.inc every function has internal linkage, and no std:: template is used. The
// tiles are configured in each call and released at its end, so a thread between two products has
// no additional state to save.
#define DISTTF_ISA amx
#include "math/bf16_pairs.inc"
#include "math/kernels_table.h"

namespace disttf::math::amx {
namespace {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileColumns = 16;  // of C; 32-bit lanes of every tile
constexpr std::size_t kTileLanes = kTileRows * kTileColumns;
constexpr std::size_t kBlock = 2 * kBf16Chain;  // steps of the depth in a tile of B
static_assert(kBf16Chain == 16);

// Steps of the depth that are packed at once: 32 KB of B for a pair of tiles, which stay in the
// first-level cache. And columns of B: whole cache lines, several adjacent ones.
constexpr std::size_t kPieceBlocks = 16;
constexpr std::size_t kPieceSteps = kPieceBlocks * kBlock;
constexpr std::size_t kPanelTiles = 4;
// Tiles of A, two for each block and 16 rows: 512 KB, in the second-level cache.
constexpr std::size_t kTilesOfA = 512;
static_assert(kProductScratchFloats >= (kTilesOfA + kPanelTiles * kPieceBlocks) * kTileLanes);

struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// Packs A [rows, steps] into tiles [row tile, block, half of the block].
bool pack_a(Matrix a, std::size_t rows, std::size_t steps, std::uint32_t* tile) {
  Seen seen;
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t tile_rows = at_most(rows - row, kTileRows);
    for (std::size_t step = 0; step < (steps + kBlock - 1) / kBlock * kBlock;
         step += kBf16Chain, tile += kTileLanes) {
      const std::size_t tile_steps = step < steps ? at_most(steps - step, kBf16Chain) : 0;
      const std::size_t across = a.turned ? tile_rows : tile_steps;
      const std::size_t down = a.turned ? tile_steps : tile_rows;
      const float* from = a.turned ? a.from(step, row).at : a.from(row, step).at;
      // The half of the lanes that a tile of A leaves at 0 removes the other chain from the sum.
      const bool upper = step % kBlock != 0;
      for (std::size_t i = 0; i < kTileRows; ++i) {
        const __m512i line = seen.load(from + i * a.stride, first_lanes(i < down ? across : 0));
        _mm512_store_si512(tile + kTileColumns * i, upper ? as_upper(line) : as_lower(line));
      }
      if (a.turned) {
        transpose(tile);
      }
    }
  }
  return seen.is_finite();
}

// Packs B [steps, columns] into tiles [column tile, block]. Block by block, so that B's lines are
// read completely.
bool pack_b(Matrix b, std::size_t steps, std::size_t columns, std::uint32_t* tiles) {
  Seen seen;
  const std::size_t blocks = (steps + kBlock - 1) / kBlock;
  for (std::size_t block = 0; block < blocks; ++block) {
    const std::size_t step = block * kBlock;
    const std::size_t lower = at_most(steps - step, kBf16Chain);
    const std::size_t upper = at_most(steps - step - lower, kBf16Chain);
    for (std::size_t column = 0; column < columns; column += kTileColumns) {
      const std::size_t wide = at_most(columns - column, kTileColumns);
      std::uint32_t* const tile = tiles + (column / kTileColumns * blocks + block) * kTileLanes;
      const float* from = b.turned ? b.from(column, step).at : b.from(step, column).at;
      const std::size_t to_upper = kBf16Chain * (b.turned ? 1 : b.stride);
      for (std::size_t i = 0; i < kTileRows; ++i) {
        // Rows, columns and steps beyond the matrix are 0 and contribute only zeros.
        const std::size_t low = b.turned ? (i < wide ? lower : 0) : (i < lower ? wide : 0);
        const std::size_t high = b.turned ? (i < wide ? upper : 0) : (i < upper ? wide : 0);
        const float* line = from + i * b.stride;
        const __m512i low_half = as_lower(seen.load(line, first_lanes(low)));
        const __m512i high_half = as_upper(seen.load(line + to_upper, first_lanes(high)));
        _mm512_store_si512(tile + kTileColumns * i, _mm512_or_si512(low_half, high_half));
      }
      if (b.turned) {
        transpose(tile);
      }
    }
  }
  return seen.is_finite();
}

// The inputs and outputs of up to 2 x 2 tiles of C.
struct Corner {
  const std::uint32_t* a;  // tiles of the first row tile; the other's are a_next lanes on
  std::size_t a_next;
  const std::uint32_t* b;
  std::size_t b_next;
  std::size_t chains;  // two for each block; one in the last if the depth ends there
  float* c;
  std::size_t c_row;
  std::size_t rows;     // 1..32
  std::size_t columns;  // 1..32
  const float* start;   // null: 0
  bool goes_on;         // C starts from its present value
};

// A compiler barrier for memory: the compiler does not know which memory the tile instructions
// read, so stores must come before and loads after it.
inline void tiles_read_memory(const void* memory) { asm volatile("" ::"r"(memory) : "memory"); }

alignas(64) constexpr float kZeros[kTileColumns] = {};

// The part of C for one tile, as the tile unit can read and write it: whole tiles in place, others
// in `copy`.
struct TileOfC {
  float* c;
  std::size_t c_row;
  std::size_t rows;
  std::size_t columns;
  const float* start;
  bool goes_on;
  float* copy;  // [16, 16]

  TileOfC(const Corner& corner, std::size_t i, std::size_t j, float* memory)
      : c(corner.c + i * kTileRows * corner.c_row + j * kTileColumns),
        c_row(corner.c_row),
        rows(at_most(corner.rows - i * kTileRows, kTileRows)),
        columns(at_most(corner.columns - j * kTileColumns, kTileColumns)),
        start(corner.start == nullptr ? nullptr : corner.start + j * kTileColumns),
        goes_on(corner.goes_on),
        copy(memory) {}

  [[nodiscard]] bool is_whole() const { return rows == kTileRows && columns == kTileColumns; }
  [[nodiscard]] float* place() const { return is_whole() ? c : copy; }
  [[nodiscard]] std::size_t row_bytes() const {
    return sizeof(float) * (is_whole() ? c_row : kTileColumns);
  }
  // The start value of the tile and the distance of its rows: 0 if all rows start alike.
  [[nodiscard]] const float* from() const {
    if (goes_on) {
      return place();
    }
    // The tile unit always reads 16 floats of a row. At the end of `start` that would be past its
    // memory, so a narrow tile reads its copy.
    return start == nullptr ? kZeros : columns == kTileColumns ? start : copy;
  }
  [[nodiscard]] std::size_t from_bytes() const { return goes_on ? row_bytes() : 0; }
  // Fills `copy` where that is from().
  [[gnu::noinline]] void prepare() const {
    if (from() != copy) {
      return;
    }
    const __mmask16 lanes = first_lanes(columns);
    // A start value is one row that from_bytes() repeats with a distance of 0.
    for (std::size_t i = 0; i < (goes_on ? rows : 1); ++i) {
      const __m512 row = _mm512_maskz_loadu_ps(lanes, goes_on ? c + i * c_row : start);
      _mm512_store_ps(copy + i * kTileColumns, row);
    }
  }
  [[gnu::noinline]] void finish() const {
    if (is_whole()) {
      return;
    }
    const __mmask16 lanes = first_lanes(columns);
    for (std::size_t i = 0; i < rows; ++i) {
      _mm512_mask_storeu_ps(c + i * c_row, lanes, _mm512_load_ps(copy + i * kTileColumns));
    }
  }
};

// C's tiles are registers 0..3, A's 4 and 5, B's 6 and 7.
template <bool kTwoRows, bool kTwoColumns>
void multiply_blocks(const Corner& corner) {
  constexpr std::size_t kRowBytes = 64;
  const std::uint32_t* a = corner.a;
  const std::uint32_t* b = corner.b;
  for (std::size_t chain = 0; chain < corner.chains; ++chain, a += kTileLanes) {
    // A tile of B holds both chains of a block, so it is loaded for every second chain only.
    if (chain % 2 == 0) {
      _tile_loadd(6, b, kRowBytes);
      if constexpr (kTwoColumns) {
        _tile_loadd(7, b + corner.b_next, kRowBytes);
      }
      b += kTileLanes;
    }
    _tile_loadd(4, a, kRowBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kTwoColumns) {
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTwoRows) {
      // Four tiles of C share two tiles each of A and B: each loaded tile is used twice.
      _tile_loadd(5, a + corner.a_next, kRowBytes);
      _tile_dpbf16ps(2, 5, 6);
      if constexpr (kTwoColumns) {
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
}

template <bool kTwoRows, bool kTwoColumns>
void multiply(const Corner& corner) {
  alignas(64) float copies[4][kTileLanes];
  const TileOfC c[4] = {{corner, 0, 0, copies[0]},
                        {corner, 0, kTwoColumns ? 1 : 0, copies[1]},
                        {corner, kTwoRows ? 1 : 0, 0, copies[2]},
                        {corner, kTwoRows ? 1 : 0, kTwoColumns ? 1 : 0, copies[3]}};
  c[0].prepare();
  if constexpr (kTwoColumns) {
    c[1].prepare();
  }
  if constexpr (kTwoRows) {
    c[2].prepare();
  }
  if constexpr (kTwoRows && kTwoColumns) {
    c[3].prepare();
  }
  // The compiler must have stored all copies before the unit reads them.
  tiles_read_memory(copies);
  _tile_loadd(0, c[0].from(), c[0].from_bytes());
  if constexpr (kTwoColumns) {
    _tile_loadd(1, c[1].from(), c[1].from_bytes());
  }
  if constexpr (kTwoRows) {
    _tile_loadd(2, c[2].from(), c[2].from_bytes());
  }
  if constexpr (kTwoRows && kTwoColumns) {
    _tile_loadd(3, c[3].from(), c[3].from_bytes());
  }
  multiply_blocks<kTwoRows, kTwoColumns>(corner);
  _tile_stored(0, c[0].place(), c[0].row_bytes());
  c[0].finish();
  if constexpr (kTwoColumns) {
    _tile_stored(1, c[1].place(), c[1].row_bytes());
    c[1].finish();
  }
  if constexpr (kTwoRows) {
    _tile_stored(2, c[2].place(), c[2].row_bytes());
    c[2].finish();
  }
  if constexpr (kTwoRows && kTwoColumns) {
    _tile_stored(3, c[3].place(), c[3].row_bytes());
    c[3].finish();
  }
}

void multiply(const Corner& corner) {
  const bool two_rows = corner.rows > kTileRows;
  const bool two_columns = corner.columns > kTileColumns;
  if (two_rows) {
    two_columns ? multiply<true, true>(corner) : multiply<true, false>(corner);
  } else {
    two_columns ? multiply<false, true>(corner) : multiply<false, false>(corner);
  }
}

// All of C for some of its rows and a piece of the depth. False: B is not finite.
bool multiply_panels(Matrix b, Corner corner, std::size_t rows, std::size_t columns,
                     std::size_t steps, const std::uint32_t* packed_a, std::uint32_t* packed_b) {
  constexpr std::size_t kPanel = kPanelTiles * kTileColumns;
  float* const c = corner.c;
  const float* const start = corner.start;
  for (std::size_t first = 0; first < columns; first += kPanel) {
    const std::size_t panel = at_most(columns - first, kPanel);
    // A panel of B stays in the first-level cache while all packed rows of A pass by.
    if (!pack_b(b.turned ? b.from(first, 0) : b.from(0, first), steps, panel, packed_b)) {
      return false;
    }
    tiles_read_memory(packed_b);
    for (std::size_t column = 0; column < panel; column += 2 * kTileColumns) {
      corner.b = packed_b + column / kTileColumns * corner.b_next;
      corner.columns = at_most(panel - column, 2 * kTileColumns);
      corner.start = start == nullptr ? nullptr : start + first + column;
      for (std::size_t row = 0; row < rows; row += 2 * kTileRows) {
        corner.a = packed_a + row / kTileRows * corner.a_next;
        corner.rows = at_most(rows - row, 2 * kTileRows);
        corner.c = c + row * corner.c_row + first + column;
        multiply(corner);
      }
    }
  }
  return true;
}

bool multiply_all(Matrix a, Matrix b, float* c, ProductShape shape, const float* start,
                  std::uint32_t* scratch) {
  std::uint32_t* const packed_b = scratch + kTilesOfA * kTileLanes;
  for (std::size_t step = 0; step < shape.depth; step += kPieceSteps) {
    const std::size_t steps = at_most(shape.depth - step, kPieceSteps);
    const std::size_t blocks = (steps + kBlock - 1) / kBlock;
    // The shorter the piece of the depth, the more rows of A fit into the same memory.
    const std::size_t most_rows = kTilesOfA / (2 * blocks) * kTileRows;
    for (std::size_t row = 0; row < shape.rows; row += most_rows) {
      const std::size_t rows = at_most(shape.rows - row, most_rows);
      if (!pack_a(a.turned ? a.from(step, row) : a.from(row, step), rows, steps, scratch)) {
        return false;
      }
      const Corner corner{.a = nullptr,
                          .a_next = 2 * blocks * kTileLanes,
                          .b = nullptr,
                          .b_next = blocks * kTileLanes,
                          // An upper half that lies beyond the depth is not multiplied at all: it
                          // would add a 0.
                          .chains = (steps + kBf16Chain - 1) / kBf16Chain,
                          .c = c + row * shape.columns,
                          .c_row = shape.columns,
                          .rows = 0,
                          .columns = 0,
                          .start = start,
                          .goes_on = step > 0};
      if (!multiply_panels(b.turned ? b.from(0, step) : b.from(step, 0), corner, rows,
                           shape.columns, steps, scratch, packed_b)) {
        return false;
      }
    }
  }
  return true;
}

// Returns false if C is not computed.
bool any_product(Matrix a, Matrix b, float* c, ProductShape shape, const float* start,
                 float* scratch) {
  // Without a step no tile would write C. The float32 path writes the start values.
  if (shape.depth == 0) {
    return false;
  }
  const TileConfig config;
  _tile_loadconfig(&config);
  const bool done = multiply_all(a, b, c, shape, start, reinterpret_cast<std::uint32_t*>(scratch));
  // Releases the tiles on the way of a failure as well: the float32 path follows on this thread.
  _tile_release();
  return done;
}

}  // namespace
}  // namespace disttf::math::amx

#include "math/bf16_table.inc"
