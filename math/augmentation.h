// Augmentation: changes a training image slightly and at random each time it is used, so that a
// model learns to ignore position, angle, size and handedness.
//
// The pixel of the result with its centre at p (in pixels from the image's centre, x to the right
// and y down) is the image's pixel at
//
//   q = factor * R * H * F * p + shift + displacement(p)
//
// F: with `flip`, x -> -x for every second image on average; H: x -> x + h * y; R: a rotation. The
// displacement of `elastic` is given at the points of a grid of 4x4 cells over the image and
// interpolated linearly between them. The value at q is interpolated bilinearly with 8 bits of
// fraction in each direction; outside the image everything is 0. Finally `cutout` sets a square
// inside the image to 0.
//
// Each amount is drawn uniformly within its bound from (seed, step, index of the image in the
// step), so it does not depend on which task computes it. All arithmetic is in integers, so results
// are bit-identical on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "math/model.h"
#include "math/shape.h"

namespace disttf::math {

// Each value is the bound of what is drawn, in both directions; 0: off. All but the angle are at
// least 0 and below 1.
struct Augmentation {
  float shift = 0;           // share of the image's width and of its height
  std::uint64_t rotate = 0;  // degrees, at most kMostDegrees
  float scale = 0;           // 0.1: the factor is from 0.9 to 1.1
  float shear = 0;           // h
  float elastic = 0;         // share of a cell's width and height
  float cutout = 0;          // share of the smaller side: side of the square, fixed
  bool flip = false;

  // Whether any augmentation is on.
  [[nodiscard]] bool any() const noexcept { return *this != Augmentation{}; }
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};
inline constexpr std::uint64_t kMostDegrees = 180;

// Not thread-safe: one for each computing thread. Allocates nothing after construction.
class Augmenter {
 public:
  Augmenter(const Augmentation& augmentation, const Shape& shape, std::uint64_t seed);

  // Writes the augmented `image` to `out`, for `step` and index `place`, both below 2^48. The two
  // do not overlap. REQUIRES: both have shape.size() bytes.
  void apply(std::span<const std::uint8_t> image, std::uint64_t step, std::uint64_t place,
             std::span<std::uint8_t> out);

 private:
  // In units of 1/65536.
  using Fixed = std::int64_t;
  static constexpr std::size_t kCells = 4;
  static constexpr std::size_t kPoints = kCells + 1;

  // q = { xx * p.x + xy * p.y + x, yx * p.x + yy * p.y + y }
  struct Map {
    Fixed xx = 0;
    Fixed xy = 0;
    Fixed yx = 0;
    Fixed yy = 0;
    Fixed x = 0;
    Fixed y = 0;
  };
  // The grid points between which a column or row of pixels lies, and the distance beyond the
  // first.
  struct GridPosition {
    std::size_t point = 0;
    Fixed beyond = 0;
  };
  struct Displacement {
    Fixed x = 0;
    Fixed y = 0;
  };

  // Two numbers between -1 and 1, a function of `use` and the image.
  [[nodiscard]] std::array<Fixed, 2> draw(std::uint64_t use) const noexcept;
  [[nodiscard]] Map draw_map() const noexcept;
  void draw_grid() noexcept;
  void frame(std::span<const std::uint8_t> image) noexcept;
  void warp(const Map& map, std::span<std::uint8_t> out) noexcept;
  // Computes one pixel of `out`: the image's value at (x, y), from its first pixel's centre.
  void sample(Fixed x, Fixed y, std::uint8_t* out) const noexcept;
  void cut_out(std::span<std::uint8_t> out) const noexcept;

  Augmentation augmentation_;
  Shape shape_;
  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  std::uint64_t place_ = 0;
  std::vector<std::uint8_t> framed_;  // the image with a border of zeros, one pixel wide
  std::vector<GridPosition> columns_;
  std::vector<GridPosition> rows_;
  std::array<std::array<Displacement, kPoints>, kPoints> grid_{};  // [row][column]
};

// Augments whole batches. Not thread-safe.
class AugmentedBatch {
 public:
  // `rows`: size of every batch.
  AugmentedBatch(const Augmentation& augmentation, const Shape& shape, std::uint64_t seed,
                 std::size_t rows);

  // Row i of the result is row `rows[i]` of `set`, augmented for `step` with index first + i. The
  // result borrows from this object until the next call. REQUIRES: rows.size() is the
  // constructor's.
  ImageSet make(const ImageSet& set, std::span<const std::uint32_t> rows, std::uint64_t step,
                std::uint64_t first);
  // All rows of a result: 0, 1, 2, ...
  [[nodiscard]] std::span<const std::uint32_t> rows() const noexcept { return rows_; }

 private:
  Augmenter augmenter_;
  std::size_t image_size_;
  std::vector<std::uint8_t> images_;
  std::vector<std::uint8_t> labels_;
  std::vector<std::uint32_t> rows_;
};

// Test-time augmentation: an evaluated image is passed to the model unchanged and shifted by a few
// pixels, and the outputs are averaged. A model that recognises an image only at its accidental
// position is outvoted by its results for the shifted copies.
//
// "By up to n pixels" are the shifts by whole pixels right and down with |right| + |down| <= n,
// including none: 5 for n = 1, the image and its four neighbours; 13 for 2, 25 for 3. Pixels from
// outside the image are 0, as in math/augmentation.h.
//
// Pure functions; callable from any thread. Nothing here allocates.

// In pixels; negative in the other direction.
struct ImageShift {
  std::ptrdiff_t right = 0;
  std::ptrdiff_t down = 0;
  friend bool operator==(const ImageShift&, const ImageShift&) = default;
};

// 145 shifts: an evaluation takes as many times as long.
inline constexpr std::uint64_t kMostTestShift = 8;

// The number of shifts by up to `most` pixels.
[[nodiscard]] constexpr std::size_t count_of_shifts(std::size_t most) noexcept {
  return 2 * most * (most + 1) + 1;
}

// Calls use(shift) for each shift by up to `most` pixels, from top to bottom and in each row from
// left to right: the order in which outputs are added.
template <typename Use>
void for_each_shift(std::size_t most, const Use& use) {
  const auto reach = static_cast<std::ptrdiff_t>(most);
  for (std::ptrdiff_t down = -reach; down <= reach; ++down) {
    const std::ptrdiff_t rest = reach - std::abs(down);
    for (std::ptrdiff_t right = -rest; right <= rest; ++right) {
      use(ImageShift{.right = right, .down = down});
    }
  }
}

// Writes the shifted `image` to `out`; both have shape.size() numbers and do not overlap.
// `copy(from, to, count)` converts and writes `count` bytes.
template <typename Number, typename Copy>
void shift_image(const std::uint8_t* image, const Shape& shape, ImageShift by, Number* out,
                 const Copy& copy) {
  if (by == ImageShift{}) {
    copy(image, out, shape.size());
    return;
  }
  // For a line of pixels, and for the lines: how many stay inside, and their source and
  // destination.
  struct Part {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t count = 0;
  };
  const auto inside = [](std::size_t length, std::ptrdiff_t shift) {
    const std::size_t gone = std::min(length, static_cast<std::size_t>(std::abs(shift)));
    return Part{.from = shift < 0 ? gone : 0, .to = shift < 0 ? 0 : gone, .count = length - gone};
  };
  const Part lines = inside(shape.height, by.down);
  const Part pixels = inside(shape.width, by.right);
  const std::size_t line = shape.width * shape.channels;
  std::fill_n(out, lines.to * line, Number{0});
  for (std::size_t i = 0; i < lines.count; ++i) {
    const std::uint8_t* const from = image + (lines.from + i) * line + pixels.from * shape.channels;
    Number* const to = out + (lines.to + i) * line;
    const std::size_t before = pixels.to * shape.channels;
    const std::size_t count = pixels.count * shape.channels;
    std::fill_n(to, before, Number{0});
    copy(from, to + before, count);
    std::fill(to + before + count, to + line, Number{0});
  }
  std::fill(out + (lines.to + lines.count) * line, out + shape.size(), Number{0});
}

}  // namespace disttf::math
