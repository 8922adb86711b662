// Test-time augmentation: an image that is evaluated is given to the model as it is and shifted by
// a few pixels, and the outputs for all of these are averaged: a model that is sure of an image
// only where it lies by chance is outvoted by what it makes of the same image beside it.
//
// "By up to n pixels" are the shifts by whole pixels right and down with |right| + |down| <= n,
// none among them: 5 for n = 1, the image and its four neighbours; 13 for 2, 25 for 3. What comes
// from outside of the image is 0, as in math/augmentation.h.
//
// Pure functions; callable from any thread. Nothing here allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "math/shape.h"

namespace disttf::math {

// In pixels, either of them below 0 for the other way.
struct ImageShift {
  std::ptrdiff_t right = 0;
  std::ptrdiff_t down = 0;
  friend bool operator==(const ImageShift&, const ImageShift&) = default;
};

// 145 shifts: an evaluation takes as many times as long.
inline constexpr std::uint64_t kMostTestShift = 8;

// How many shifts by up to `most` pixels there are.
[[nodiscard]] constexpr std::size_t count_of_shifts(std::size_t most) noexcept {
  return 2 * most * (most + 1) + 1;
}

// Calls use(shift) for each shift by up to `most` pixels, from the top down and in each row from
// the left: the order in which outputs are added up.
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

// Writes `image`, shifted, over `out`; both have shape.size() numbers and do not overlap.
// `copy(from, to, count)` writes what becomes of so many bytes of it.
template <typename Number, typename Copy>
void shift_image(const std::uint8_t* image, const Shape& shape, ImageShift by, Number* out,
                 const Copy& copy) {
  if (by == ImageShift{}) {
    copy(image, out, shape.size());
    return;
  }
  // Of a line of pixels, and of the lines: how many stay inside, from where to where.
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
