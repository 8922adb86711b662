// Augmentation: a training image is changed a little, at random, each time that it is taken, so
// that a model learns what does not depend on place, angle, size and hand.
//
// The pixel of the result whose centre lies at p (in pixels, from the image's centre, x to the
// right and y down) is the image's at
//
//   q = factor * R * H * F * p + shift + displacement(p)
//
// F: with `flip`, x -> -x for every second image; H: x -> x + h * y; R: a turn; the displacement
// of `elastic` is given at the points of a grid of 4x4 cells over the image and interpolated
// linearly between them. q's value is interpolated bilinearly, between pixels, 8 bits of fraction
// each way; outside the image everything is 0. Then `cutout`: a square, wholly inside the image, is
// set to 0.
//
// Drawn from (seed, step, place of the image among those of the step), evenly in each bound, so it
// does not depend on who computes it; and computed in whole numbers, so that its bits do not depend
// on where.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "math/model.h"
#include "math/shape.h"

namespace disttf::math {

// Each is the largest that is drawn, either way; 0: none of it. All but the angle are from 0 to
// below 1.
struct Augmentation {
  float shift = 0;           // share of the image's width and of its height
  std::uint64_t rotate = 0;  // degrees, at most kMostDegrees
  float scale = 0;           // 0.1: the factor is from 0.9 to 1.1
  float shear = 0;           // h
  float elastic = 0;         // share of a cell's width and height
  float cutout = 0;          // share of the smaller side: the square's, which is not drawn
  bool flip = false;

  // Whether it changes any image.
  [[nodiscard]] bool any() const noexcept { return *this != Augmentation{}; }
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};
inline constexpr std::uint64_t kMostDegrees = 180;

// Not thread-safe: one for each computing thread. Allocates nothing after construction.
class Augmenter {
 public:
  Augmenter(const Augmentation& augmentation, const Shape& shape, std::uint64_t seed);

  // Writes what becomes of `image` in `step` (below 2^48) at `place` (below 2^48) over `out`, which
  // does not overlap it. REQUIRES: both have shape.size() bytes.
  void apply(std::span<const std::uint8_t> image, std::uint64_t step, std::uint64_t place,
             std::span<std::uint8_t> out);

 private:
  // In 1/65536.
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
  // Between which points of the grid a column or row of pixels lies, and how far beyond the first.
  struct GridPlace {
    std::size_t point = 0;
    Fixed beyond = 0;
  };
  struct Displacement {
    Fixed x = 0;
    Fixed y = 0;
  };

  // Two numbers between -1 and 1, the same for the same `use` of the same image.
  [[nodiscard]] std::array<Fixed, 2> draw(std::uint64_t use) const noexcept;
  [[nodiscard]] Map draw_map() const noexcept;
  void draw_grid() noexcept;
  void frame(std::span<const std::uint8_t> image) noexcept;
  void warp(const Map& map, std::span<std::uint8_t> out) noexcept;
  // One pixel of `out`: the image's at (x, y), from its first pixel's centre.
  void sample(Fixed x, Fixed y, std::uint8_t* out) const noexcept;
  void cut_out(std::span<std::uint8_t> out) const noexcept;

  Augmentation augmentation_;
  Shape shape_;
  std::uint64_t seed_;
  std::uint64_t step_ = 0;
  std::uint64_t place_ = 0;
  std::vector<std::uint8_t> framed_;  // the image within a frame of zeros, one pixel wide
  std::vector<GridPlace> columns_;
  std::vector<GridPlace> rows_;
  std::array<std::array<Displacement, kPoints>, kPoints> grid_{};  // of the image, [row][column]
};

// A batch of them. Not thread-safe.
class AugmentedBatch {
 public:
  // `rows`: of every batch.
  AugmentedBatch(const Augmentation& augmentation, const Shape& shape, std::uint64_t seed,
                 std::size_t rows);

  // Row i of the result is what becomes of row `rows[i]` of `set` in `step` at the place first + i.
  // Borrowed of this object, until the next call. REQUIRES: rows.size() is the constructor's.
  ImageSet make(const ImageSet& set, std::span<const std::uint32_t> rows, std::uint64_t step,
                std::uint64_t first);
  // Of a result, all rows: 0, 1, 2, ...
  [[nodiscard]] std::span<const std::uint32_t> rows() const noexcept { return rows_; }

 private:
  Augmenter augmenter_;
  std::size_t image_size_;
  std::vector<std::uint8_t> images_;
  std::vector<std::uint8_t> labels_;
  std::vector<std::uint32_t> rows_;
};

}  // namespace disttf::math
