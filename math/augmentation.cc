#include "math/augmentation.h"

#include <algorithm>
#include <cassert>
#include <numeric>

#include "math/random.h"

namespace disttf::math {
namespace {

// Fixed-point numbers with 16 fractional bits: integers make the result bit-identical on every
// machine.
constexpr std::int64_t kFixedOne = std::int64_t{1} << 16U;
constexpr unsigned kFixedBits = 16;
constexpr unsigned kDrawBits = 8;  // of an index: at most 2^8 draws for each image

// What a pair of numbers is drawn for; the grid points follow the last value.
// Each use has its own index, so switching one of them off does not change what the others draw.
enum Use : std::uint64_t { kShift, kTurnAndScale, kShearAndFlip, kCutout, kGrid };

std::int64_t fixed(float share) noexcept {
  return static_cast<std::int64_t>(static_cast<double>(share) * static_cast<double>(kFixedOne));
}

std::int64_t product(std::int64_t a, std::int64_t b) noexcept { return (a * b) >> kFixedBits; }

struct Turn {
  std::int64_t cosine = kFixedOne;
  std::int64_t sine = 0;
};

// Cosine and sine of `degrees` / 65536, by the series: for half a turn the first omitted term is
// below 1e-6. In integers with unit 2^-28; none exceeds 2^62.
Turn turn(std::int64_t degrees) noexcept {
  constexpr unsigned kBits = 28;
  constexpr std::int64_t kRadian = 4'685'083;  // pi / 180 * 2^28, rounded
  constexpr std::int64_t kTerms = 19;
  const std::int64_t angle = (degrees * kRadian) >> kFixedBits;
  std::int64_t term = std::int64_t{1} << kBits;
  std::int64_t cosine = 0;
  std::int64_t sine = 0;
  for (std::int64_t n = 0; n < kTerms; ++n) {  // term = angle^n / n!
    const std::int64_t sign = n % 4 < 2 ? 1 : -1;
    (n % 2 == 0 ? cosine : sine) += sign * term;
    term = ((term * angle) >> kBits) / (n + 1);
  }
  return {.cosine = cosine >> (kBits - kFixedBits), .sine = sine >> (kBits - kFixedBits)};
}

}  // namespace

Augmenter::Augmenter(const Augmentation& augmentation, const Shape& shape, std::uint64_t seed)
    : augmentation_(augmentation),
      shape_(shape),
      seed_(seed),
      framed_((shape.width + 2) * (shape.height + 2) * shape.channels) {
  static_assert(kGrid + kPoints * kPoints <= std::uint64_t{1} << kDrawBits);
  const auto grid_positions = [](std::size_t pixels) {
    std::vector<GridPosition> all;
    for (std::size_t each = 0; each < pixels; ++each) {
      // The centre of the pixel, in cells of the grid. It lies before the last point, so `point +
      // 1` exists.
      const std::size_t at = (2 * each + 1) * kCells * kFixedOne / (2 * pixels);
      all.push_back({.point = at / kFixedOne, .beyond = static_cast<Fixed>(at % kFixedOne)});
    }
    return all;
  };
  columns_ = grid_positions(shape.width);
  rows_ = grid_positions(shape.height);
}

void Augmenter::apply(std::span<const std::uint8_t> image, std::uint64_t step, std::uint64_t place,
                      std::span<std::uint8_t> out) {
  assert(image.size() == shape_.size() && out.size() == shape_.size());
  step_ = step;
  place_ = place;
  frame(image);
  if (augmentation_.elastic != 0) {
    draw_grid();
  }
  warp(draw_map(), out);
  if (augmentation_.cutout != 0) {
    cut_out(out);
  }
}

std::array<Augmenter::Fixed, 2> Augmenter::draw(std::uint64_t use) const noexcept {
  const std::uint64_t bits = random_bits(seed_, static_cast<std::uint32_t>(Purpose::kAugmentation),
                                         step_, (place_ << kDrawBits) | use);
  const auto between = [](std::uint64_t half) {
    // The upper 17 of 32 bits as a number in [-1, 1).
    return static_cast<Fixed>(half >> (32 - kFixedBits - 1)) - kFixedOne;
  };
  return {between(bits & 0xFFFFFFFFU), between(bits >> 32U)};
}

Augmenter::Map Augmenter::draw_map() const noexcept {
  // Draws are cheap, so all are made even where a bound is 0; the products are then 0.
  const auto [right, down] = draw(kShift);
  const auto [angle, size] = draw(kTurnAndScale);
  const auto [slant, side] = draw(kShearAndFlip);
  const Turn turned = turn(angle * static_cast<Fixed>(augmentation_.rotate));
  const Fixed factor = kFixedOne + product(size, fixed(augmentation_.scale));
  const Fixed shear = product(slant, fixed(augmentation_.shear));
  const Fixed mirror = augmentation_.flip && side < 0 ? -1 : 1;
  const Fixed cosine = product(factor, turned.cosine);
  const Fixed sine = product(factor, turned.sine);
  // The product factor * R * H * F of augmentation.h, multiplied out.
  return {.xx = mirror * cosine,
          .xy = product(cosine, shear) - sine,
          .yx = mirror * sine,
          .yy = product(sine, shear) + cosine,
          .x = product(right, fixed(augmentation_.shift)) * static_cast<Fixed>(shape_.width),
          .y = product(down, fixed(augmentation_.shift)) * static_cast<Fixed>(shape_.height)};
}

void Augmenter::draw_grid() noexcept {
  const Fixed most = fixed(augmentation_.elastic);
  for (std::size_t row = 0; row < kPoints; ++row) {
    for (std::size_t column = 0; column < kPoints; ++column) {
      const auto [x, y] = draw(kGrid + row * kPoints + column);
      grid_[row][column] = {
          .x = product(x, most) * static_cast<Fixed>(shape_.width) / static_cast<Fixed>(kCells),
          .y = product(y, most) * static_cast<Fixed>(shape_.height) / static_cast<Fixed>(kCells)};
    }
  }
}

void Augmenter::frame(std::span<const std::uint8_t> image) noexcept {
  const std::size_t line = shape_.width * shape_.channels;
  const std::size_t framed_line = line + 2 * shape_.channels;
  for (std::size_t row = 0; row < shape_.height; ++row) {
    // Only the inside is written: the border has been 0 since construction.
    const auto from = image.subspan(row * line, line);
    std::copy(from.begin(), from.end(), framed_.data() + (row + 1) * framed_line + shape_.channels);
  }
}

void Augmenter::warp(const Map& map, std::span<std::uint8_t> out) noexcept {
  const auto mix = [](const Displacement& a, const Displacement& b, Fixed share) {
    return Displacement{.x = a.x + product(b.x - a.x, share), .y = a.y + product(b.y - a.y, share)};
  };
  // Twice the distance from the centre is a whole number of pixels.
  const auto last_x = static_cast<Fixed>(shape_.width) - 1;
  const auto last_y = static_cast<Fixed>(shape_.height) - 1;
  std::uint8_t* pixel = out.data();
  for (std::size_t row = 0; row < shape_.height; ++row) {
    const Fixed down = 2 * static_cast<Fixed>(row) - last_y;
    std::array<Displacement, kPoints> line{};  // of the grid, for this row
    for (std::size_t point = 0; augmentation_.elastic != 0 && point < kPoints; ++point) {
      line[point] = mix(grid_[rows_[row].point][point], grid_[rows_[row].point + 1][point],
                        rows_[row].beyond);
    }
    for (std::size_t column = 0; column < shape_.width; ++column) {
      // Divided by 2 only after the multiplication, so that no half pixel is lost.
      const Fixed right = 2 * static_cast<Fixed>(column) - last_x;
      Fixed x = (map.xx * right + map.xy * down + last_x * kFixedOne) / 2 + map.x;
      Fixed y = (map.yx * right + map.yy * down + last_y * kFixedOne) / 2 + map.y;
      if (augmentation_.elastic != 0) {
        const GridPosition& place = columns_[column];
        const Displacement moved = mix(line[place.point], line[place.point + 1], place.beyond);
        x += moved.x;
        y += moved.y;
      }
      sample(x, y, pixel);
      pixel += shape_.channels;
    }
  }
}

void Augmenter::sample(Fixed x, Fixed y, std::uint8_t* out) const noexcept {
  constexpr unsigned kWeightBits = 8;
  constexpr Fixed kWhole = Fixed{1} << kWeightBits;
  constexpr Fixed kHalf = Fixed{1} << (kFixedBits - kWeightBits - 1);
  // Relative to the frame, whose first pixel is the image's at (-1, -1).
  // Rounds to the 8 bits of the weights; kHalf is half of the last one.
  const Fixed across = (x + kFixedOne + kHalf) >> (kFixedBits - kWeightBits);
  const Fixed along = (y + kFixedOne + kHalf) >> (kFixedBits - kWeightBits);
  const Fixed column = across >> kWeightBits;
  const Fixed row = along >> kWeightBits;
  const std::size_t channels = shape_.channels;
  // After this test all four neighbours lie in the frame.
  if (column < 0 || column > static_cast<Fixed>(shape_.width) || row < 0 ||
      row > static_cast<Fixed>(shape_.height)) {
    std::fill_n(out, channels, std::uint8_t{0});
    return;
  }
  const auto right = static_cast<std::uint32_t>(across & (kWhole - 1));
  const auto down = static_cast<std::uint32_t>(along & (kWhole - 1));
  const auto left = static_cast<std::uint32_t>(kWhole) - right;
  const auto up = static_cast<std::uint32_t>(kWhole) - down;
  const std::size_t line = (shape_.width + 2) * channels;
  const std::uint8_t* const above = framed_.data() + static_cast<std::size_t>(row) * line +
                                    static_cast<std::size_t>(column) * channels;
  const std::uint8_t* const below = above + line;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::uint32_t top = left * above[channel] + right * above[channel + channels];
    const std::uint32_t bottom = left * below[channel] + right * below[channel + channels];
    // The four weights add up to 2^16; 0x8000 rounds to nearest.
    out[channel] = static_cast<std::uint8_t>((up * top + down * bottom + 0x8000U) >> 16U);
  }
}

void Augmenter::cut_out(std::span<std::uint8_t> out) const noexcept {
  const auto smaller = static_cast<Fixed>(std::min(shape_.width, shape_.height));
  // `cutout` is below 1, so the square is smaller than the image.
  const auto side = static_cast<std::size_t>((smaller * fixed(augmentation_.cutout)) >> kFixedBits);
  const auto [x, y] = draw(kCutout);
  // Maps [-1, 1) to [0, free], uniformly.
  const auto place = [](Fixed number, std::size_t free) {
    return (static_cast<std::size_t>(number + kFixedOne) * (free + 1)) >> (kFixedBits + 1);
  };
  const std::size_t left = place(x, shape_.width - side);
  const std::size_t top = place(y, shape_.height - side);
  for (std::size_t row = top; row < top + side; ++row) {
    std::ranges::fill(
        out.subspan((row * shape_.width + left) * shape_.channels, side * shape_.channels),
        std::uint8_t{0});
  }
}

AugmentedBatch::AugmentedBatch(const Augmentation& augmentation, const Shape& shape,
                               std::uint64_t seed, std::size_t rows)
    : augmenter_(augmentation, shape, seed),
      image_size_(shape.size()),
      images_(rows * shape.size()),
      labels_(rows),
      rows_(rows) {
  std::iota(rows_.begin(), rows_.end(), 0U);
}

ImageSet AugmentedBatch::make(const ImageSet& set, std::span<const std::uint32_t> rows,
                              std::uint64_t step, std::uint64_t first) {
  assert(rows.size() == rows_.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    augmenter_.apply(set.images.subspan(rows[i] * image_size_, image_size_), step, first + i,
                     std::span(images_).subspan(i * image_size_, image_size_));
    labels_[i] = set.labels[rows[i]];
  }
  return {.images = images_, .labels = labels_};
}

}  // namespace disttf::math
