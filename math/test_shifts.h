// Test-time augmentation: an evaluated image is passed to the model unchanged and shifted by a few
// pixels, and the outputs are averaged. A model that recognises an image only at its accidental
// position is outvoted by its results for the shifted copies.
//
// "By up to n pixels" are the shifts by whole pixels right and down with |right| + |down| <= n,
// including none: 5 for n = 1, the image and its four neighbours; 13 for 2, 25 for 3. Pixels from
// outside the image are 0, as in math/augmentation.h.
//
// Pure functions; callable from any thread. Nothing here allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "math/shape.h"

namespace disttf::math {

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
