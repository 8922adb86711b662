#include "data/digits_draw.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>

namespace disttf::data {
namespace {

// How much the drawing varies. These values were tuned together for the accuracies in digits.h, of
// a linear model on raw pixels and of one with 100 hidden units. Less variation brings the two
// closer together; fewer gaps bring both closer to 1.
constexpr float kMaxRotation = 0.40F;   // radians, in both directions, of an even hand
constexpr float kMaxShear = 0.30F;      // x per y
constexpr float kShearBias = -0.12F;    // hands lean to the right
constexpr float kElasticPixels = 3.6F;  // largest displacement of a control point
constexpr float kMinAspect = 0.70F;     // width over height of the unit square
constexpr float kMaxAspect = 1.10F;
constexpr float kMostUneven = 1.5F;   // factor on all of these for the most uneven hand
constexpr float kGapShare = 0.4F;     // share of images in which the pen runs dry
constexpr float kLongestGap = 0.35F;  // share of the drawn path
constexpr float kBoxPixels = 20.0F;   // MNIST fits its digits into 20x20
constexpr float kMinSize = 0.75F;     // longer side, share of the box
constexpr float kMaxShift = 1.5F;     // of the centre of mass from the middle, in pixels
constexpr float kMinRadius = 0.65F;   // of the pen, in pixels
constexpr float kMaxRadius = 2.0F;
constexpr float kMinInk = 0.75F;    // of 255
constexpr float kInkNoise = 0.12F;  // of 255, in both directions

constexpr float kSide = static_cast<float>(kDigitSide);

// splitmix64: a small generator with state for one image only. The counter-based generator gives
// its seed, so images do not depend on each other.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t bits() noexcept {
    state_ += 0x9E3779B97F4A7C15U;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31U);
  }
  // [0, 1): 24 bits, so the conversion to float is exact.
  float unit() noexcept { return static_cast<float>(bits() >> 40U) * 0x1p-24F; }
  // [-1, 1)
  float either_way() noexcept { return 2.0F * unit() - 1.0F; }
  float between(float low, float high) noexcept { return low + (high - low) * unit(); }
  // [-1, 1), with small values more likely: real hands vary slightly most of the time and strongly
  // now and then.
  float mostly_small() noexcept { return 0.5F * (either_way() + either_way()); }

 private:
  std::uint64_t state_;
};

struct Point {
  float x = 0;
  float y = 0;
};

// A piece of a stroke after all deformation, in pixels.
struct Line {
  Point from;
  Point to;
};

// The longest style has 10 nodes, so at most 9 curves of kPieces lines.
constexpr std::size_t kPieces = 7;
constexpr std::size_t kMaxLines = 16 * kPieces;

struct Drawing {
  std::array<Line, kMaxLines> lines{};
  std::size_t size = 0;
  [[nodiscard]] std::span<Line> used() noexcept { return std::span(lines).first(size); }
};

// Catmull-Rom: the cubic from b to c whose slopes are given by the neighbours a and d.
Point curve(Point a, Point b, Point c, Point d, float t) noexcept {
  const auto axis = [t](float p, float q, float r, float s) {
    return q +
           0.5F * t *
               (r - p + t * (2.0F * p - 5.0F * q + 4.0F * r - s + t * (3.0F * (q - r) + s - p)));
  };
  return {axis(a.x, b.x, c.x, d.x), axis(a.y, b.y, c.y, d.y)};
}

// The style as short lines in the unit square, centred on 0.
void trace(DigitStyle style, Drawing& drawing) {
  const auto at = [&](std::size_t i) { return Point{style[i].x - 0.5F, style[i].y - 0.5F}; };
  for (std::size_t i = 0; i + 1 < style.size(); ++i) {
    // A start begins a new stroke: the pen is lifted between the two nodes.
    if (style[i + 1].kind == NodeKind::kStart) continue;
    const Point b = at(i);
    const Point c = at(i + 1);
    // At an end or a corner there is no neighbour that the curve could bend towards.
    const Point a = style[i].kind == NodeKind::kSmooth ? at(i - 1) : b;
    const bool bends = style[i + 1].kind == NodeKind::kSmooth && i + 2 < style.size() &&
                       style[i + 2].kind != NodeKind::kStart;
    const Point d = bends ? at(i + 2) : c;
    Point from = b;
    for (std::size_t piece = 1; piece <= kPieces; ++piece) {
      const float t = static_cast<float>(piece) / static_cast<float>(kPieces);
      const Point to = curve(a, b, c, d, t);
      drawing.lines[drawing.size++] = {from, to};
      from = to;
    }
  }
}

// Returns how uneven this hand is: 1 is even. Large values are rare, so most digits stay easy and a
// few are hardly legible.
float unevenness(Random& random) noexcept {
  float u = random.unit();
  for (int squared = 0; squared < 4; ++squared) u *= u;
  return 1.0F + kMostUneven * u;
}

// Removes a part of the path from some drawings.
void run_dry(Drawing& drawing, Random& random) noexcept {
  const bool is_dry = random.unit() < kGapShare;
  // All numbers are drawn even if the pen does not run dry, so that this choice does not shift the
  // later draws.
  const float share = kLongestGap * random.unit();
  const float place = random.unit();
  const auto gap = static_cast<std::size_t>(share * static_cast<float>(drawing.size));
  const std::size_t rest = drawing.size - gap;
  const auto begin = static_cast<std::size_t>(place * static_cast<float>(rest));
  if (!is_dry) return;
  const auto lines = drawing.used();
  std::copy(lines.begin() + static_cast<std::ptrdiff_t>(begin + gap), lines.end(),
            lines.begin() + static_cast<std::ptrdiff_t>(begin));
  drawing.size = rest;
}

// A linear map of the plane: rotation, shear, and scale of the axes.
struct Affine {
  float xx, xy, yx, yy;

  Affine(Random& random, float unevenness) noexcept {
    const float angle = unevenness * kMaxRotation * random.mostly_small();
    const float shear = kShearBias + unevenness * kMaxShear * random.mostly_small();
    const float aspect = random.between(kMinAspect, kMaxAspect);
    // A Taylor series instead of sin(), which is not bit-identical everywhere. At 1 radian, the
    // largest angle, the first omitted term is 2e-4.
    const float square = angle * angle;
    const float sine = angle * (1.0F - square / 6.0F * (1.0F - square / 20.0F));
    const float cosine = 1.0F - square / 2.0F * (1.0F - square / 12.0F * (1.0F - square / 30.0F));
    xx = cosine * aspect;
    xy = cosine * shear - sine;
    yx = sine * aspect;
    yy = sine * shear + cosine;
  }
  [[nodiscard]] Point operator()(Point p) const noexcept {
    return {kBoxPixels * (xx * p.x + xy * p.y), kBoxPixels * (yx * p.x + yy * p.y)};
  }
};

// A smooth field of displacements: a uniform quadratic B-spline over random control points.
class Elastic {
 public:
  Elastic(Random& random, float unevenness) noexcept {
    const float strength = unevenness * kElasticPixels * random.between(0.4F, 1.0F);
    for (Point& point : control_) {
      point = {strength * random.mostly_small(), strength * random.mostly_small()};
    }
  }
  [[nodiscard]] Point operator()(Point p) const noexcept {
    const Weights column(p.x);
    const Weights row(p.y);
    Point moved = p;
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        const Point& control = control_[(row.first + i) * kControls + column.first + j];
        const float weight = row.weight[i] * column.weight[j];
        moved.x += weight * control.x;
        moved.y += weight * control.y;
      }
    }
    return moved;
  }

 private:
  static constexpr std::size_t kControls = 6;    // per side
  static constexpr float kSpacingPixels = 7.0F;  // 4 intervals cover the 28 pixels

  // Which three control points affect a coordinate, and their weights.
  struct Weights {
    std::size_t first;
    std::array<float, 3> weight;
    explicit Weights(float pixels) noexcept {
      // Just below 4, so that the last of three control points is still in the grid.
      const float most = static_cast<float>(kControls - 2) - 0.001F;
      const float place = std::clamp((pixels + 0.5F * kSide) / kSpacingPixels, 0.0F, most);
      first = static_cast<std::size_t>(place);
      const float t = place - static_cast<float>(first);
      // The quadratic B-spline's weights add up to 1: a field of equal control points moves
      // everything alike.
      weight = {0.5F * (1.0F - t) * (1.0F - t), 0.5F + t * (1.0F - t), 0.5F * t * t};
    }
  };
  std::array<Point, kControls * kControls> control_{};
};

float length(Line line) noexcept {
  const float dx = line.to.x - line.from.x;
  const float dy = line.to.y - line.from.y;
  return std::sqrt(dx * dx + dy * dy);
}

// Returns the map of both axes that fits the drawing into the box and moves its centre of mass to
// the middle of the image, plus a shift. MNIST's digits were prepared in the same way.
void place(std::span<Line> lines, Random& random) noexcept {
  Point low = lines.front().from;
  Point high = low;
  Point mass;
  float total = 0;
  for (const Line& line : lines) {
    low = {std::min(low.x, line.to.x), std::min(low.y, line.to.y)};
    high = {std::max(high.x, line.to.x), std::max(high.y, line.to.y)};
    // The pen leaves as much ink as the line is long, so a line's mass is its length, at its
    // middle.
    const float weight = length(line);
    mass.x += weight * 0.5F * (line.from.x + line.to.x);
    mass.y += weight * 0.5F * (line.from.y + line.to.y);
    total += weight;
  }
  mass = {mass.x / total, mass.y / total};
  const float extent = std::max(high.x - low.x, high.y - low.y);
  // Lines have no width here; the pen adds about one pixel on each side.
  const float scale = (kBoxPixels - 2.0F) * random.between(kMinSize, 1.0F) / extent;
  const Point middle = {0.5F * kSide + kMaxShift * random.mostly_small(),
                        0.5F * kSide + kMaxShift * random.mostly_small()};
  const auto move = [&](Point p) {
    return Point{middle.x + scale * (p.x - mass.x), middle.y + scale * (p.y - mass.y)};
  };
  for (Line& line : lines) line = {move(line.from), move(line.to)};
}

// Pixel (x, y) has its middle at (x + 0.5, y + 0.5).
using Distances = std::array<float, kDigitPixels>;  // squared, to the nearest line

// First and one past the last pixel whose middle may lie within `reach` of [low, high].
std::pair<std::size_t, std::size_t> pixel_range(float low, float high, float reach) noexcept {
  const float first = std::clamp(low - reach, 0.0F, kSide);
  const float last = std::clamp(high + reach + 1.0F, 0.0F, kSide);
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(last)};
}

void measure(Line line, float reach, Distances& distances) noexcept {
  const auto [x_low, x_high] = std::minmax(line.from.x, line.to.x);
  const auto [y_low, y_high] = std::minmax(line.from.y, line.to.y);
  const auto [column_begin, column_end] = pixel_range(x_low, x_high, reach);
  const auto [row_begin, row_end] = pixel_range(y_low, y_high, reach);
  const float dx = line.to.x - line.from.x;
  const float dy = line.to.y - line.from.y;
  // The small addend prevents a division by zero for a line of zero length.
  const float inverse = 1.0F / (dx * dx + dy * dy + 1e-6F);
  for (std::size_t row = row_begin; row < row_end; ++row) {
    const float py = static_cast<float>(row) + 0.5F - line.from.y;
    for (std::size_t column = column_begin; column < column_end; ++column) {
      const float px = static_cast<float>(column) + 0.5F - line.from.x;
      // The nearest point of the line: the projection, or the end that is closer.
      const float along = std::clamp((px * dx + py * dy) * inverse, 0.0F, 1.0F);
      const float ex = px - along * dx;
      const float ey = py - along * dy;
      float& nearest = distances[row * kDigitSide + column];
      nearest = std::min(nearest, ex * ex + ey * ey);
    }
  }
}

// Ink fades over the pixel at the pen's edge. Noise affects only ink; paper stays 0.
void ink(const Distances& distances, float radius, Random& random,
         std::span<std::uint8_t, kDigitPixels> pixels) noexcept {
  const float reach = radius + 0.5F;
  const float strength = random.between(kMinInk, 1.0F);
  constexpr float kWhole = 255.99F;  // truncated below: full ink is 255
  for (std::size_t i = 0; i < kDigitPixels; ++i) {
    pixels[i] = 0;
    // Compares squares, so that only pixels with ink need a root.
    if (distances[i] >= reach * reach) continue;
    const float cover = std::min(reach - std::sqrt(distances[i]), 1.0F);
    const float value = cover * (strength + kInkNoise * random.either_way());
    pixels[i] = static_cast<std::uint8_t>(kWhole * std::clamp(value, 0.0F, 1.0F));
  }
}

}  // namespace

void draw_digit(std::uint8_t label, std::uint64_t random_seed,
                std::span<std::uint8_t, kDigitPixels> pixels) {
  // The order of the draws below is part of the data set: changing it changes the pinned checksums.
  Random random(random_seed);
  const std::span<const DigitStyle> styles = digit_styles(label);
  Drawing drawing;
  trace(styles[(random.bits() >> 32U) % styles.size()], drawing);
  const float uneven = unevenness(random);
  const Affine affine(random, uneven);
  const Elastic elastic(random, uneven);
  for (Line& line : drawing.used()) {
    line = {elastic(affine(line.from)), elastic(affine(line.to))};
  }
  // Before place(), which centres what is left of the drawing.
  run_dry(drawing, random);
  place(drawing.used(), random);

  const float radius = random.between(kMinRadius, kMaxRadius);
  Distances distances;
  // Farther than any point of the image, so that pixels without a line get no ink.
  distances.fill(2.0F * kSide * kSide);
  for (const Line& line : drawing.used()) measure(line, radius + 0.5F, distances);
  ink(distances, radius, random, pixels);
}

namespace {

// Short names keep the tables below readable as drawings.
constexpr StrokeNode start(float x, float y) { return {x, y, NodeKind::kStart}; }
constexpr StrokeNode smooth(float x, float y) { return {x, y, NodeKind::kSmooth}; }
constexpr StrokeNode corner(float x, float y) { return {x, y, NodeKind::kCorner}; }

constexpr std::array kZeroClosed{start(0.55F, 0.02F),  smooth(0.25F, 0.15F), smooth(0.12F, 0.50F),
                                 smooth(0.25F, 0.87F), smooth(0.50F, 0.98F), smooth(0.78F, 0.85F),
                                 smooth(0.88F, 0.50F), smooth(0.76F, 0.15F), smooth(0.52F, 0.02F)};
constexpr std::array kZeroOpenTop{start(0.68F, 0.12F),  smooth(0.40F, 0.03F), smooth(0.16F, 0.30F),
                                  smooth(0.15F, 0.70F), smooth(0.42F, 0.98F), smooth(0.78F, 0.80F),
                                  smooth(0.85F, 0.40F), smooth(0.62F, 0.08F), smooth(0.40F, 0.12F)};

constexpr std::array kOneBar{start(0.50F, 0.00F), corner(0.50F, 1.00F)};
constexpr std::array kOneFlag{start(0.30F, 0.22F), corner(0.52F, 0.00F), corner(0.52F, 1.00F)};
constexpr std::array kOneFlagAndBase{start(0.30F, 0.22F), corner(0.52F, 0.00F),
                                     corner(0.52F, 1.00F), start(0.26F, 1.00F),
                                     corner(0.78F, 1.00F)};

constexpr std::array kTwoPlain{start(0.15F, 0.25F),  smooth(0.32F, 0.05F), smooth(0.65F, 0.04F),
                               smooth(0.80F, 0.28F), smooth(0.60F, 0.58F), corner(0.15F, 0.97F),
                               corner(0.88F, 0.95F)};
constexpr std::array kTwoLoop{start(0.15F, 0.22F),  smooth(0.40F, 0.02F), smooth(0.75F, 0.12F),
                              smooth(0.74F, 0.42F), smooth(0.45F, 0.80F), smooth(0.20F, 0.97F),
                              smooth(0.12F, 0.86F), smooth(0.28F, 0.78F), smooth(0.55F, 0.92F),
                              smooth(0.90F, 0.93F)};
constexpr std::array kTwoWide{start(0.12F, 0.10F),  smooth(0.50F, 0.00F), smooth(0.80F, 0.22F),
                              smooth(0.50F, 0.62F), corner(0.10F, 0.98F), smooth(0.50F, 0.88F),
                              smooth(0.92F, 1.00F)};

constexpr std::array kThreeRound{start(0.15F, 0.12F),  smooth(0.50F, 0.00F), smooth(0.80F, 0.20F),
                                 smooth(0.68F, 0.42F), corner(0.40F, 0.48F), smooth(0.72F, 0.54F),
                                 smooth(0.86F, 0.76F), smooth(0.55F, 1.00F), smooth(0.12F, 0.88F)};
constexpr std::array kThreeFlatTop{start(0.15F, 0.02F),  corner(0.80F, 0.02F), corner(0.42F, 0.42F),
                                   smooth(0.78F, 0.52F), smooth(0.85F, 0.78F), smooth(0.52F, 1.00F),
                                   smooth(0.12F, 0.88F)};
constexpr std::array kThreeLoop{start(0.20F, 0.08F),  smooth(0.55F, 0.00F), smooth(0.78F, 0.20F),
                                smooth(0.55F, 0.44F), smooth(0.36F, 0.50F), smooth(0.44F, 0.40F),
                                smooth(0.75F, 0.56F), smooth(0.80F, 0.82F), smooth(0.50F, 1.00F),
                                smooth(0.15F, 0.94F)};

constexpr std::array kFourOpen{start(0.25F, 0.00F), corner(0.14F, 0.56F), corner(0.88F, 0.54F),
                               start(0.68F, 0.08F), corner(0.66F, 1.00F)};
constexpr std::array kFourClosed{start(0.66F, 1.00F), corner(0.66F, 0.00F), corner(0.10F, 0.66F),
                                 corner(0.92F, 0.66F)};
constexpr std::array kFourCurved{start(0.20F, 0.02F),  smooth(0.14F, 0.40F), smooth(0.32F, 0.56F),
                                 smooth(0.76F, 0.46F), start(0.82F, 0.04F),  smooth(0.72F, 0.50F),
                                 smooth(0.66F, 1.00F)};

constexpr std::array kFiveCorners{start(0.80F, 0.02F),  corner(0.28F, 0.03F), corner(0.22F, 0.45F),
                                  smooth(0.50F, 0.38F), smooth(0.84F, 0.60F), smooth(0.70F, 0.92F),
                                  smooth(0.40F, 1.00F), smooth(0.12F, 0.88F)};
constexpr std::array kFiveTwoStrokes{
    start(0.25F, 0.05F),  corner(0.22F, 0.45F), smooth(0.55F, 0.40F), smooth(0.82F, 0.65F),
    smooth(0.60F, 0.97F), smooth(0.12F, 0.90F), start(0.25F, 0.05F),  corner(0.88F, 0.00F)};
constexpr std::array kFiveCurved{start(0.82F, 0.06F),  smooth(0.40F, 0.04F), smooth(0.22F, 0.25F),
                                 smooth(0.42F, 0.43F), smooth(0.75F, 0.60F), smooth(0.70F, 0.90F),
                                 smooth(0.35F, 1.00F), smooth(0.10F, 0.88F)};

constexpr std::array kSixCurved{start(0.70F, 0.02F),  smooth(0.35F, 0.28F), smooth(0.15F, 0.65F),
                                smooth(0.30F, 0.95F), smooth(0.65F, 0.97F), smooth(0.82F, 0.72F),
                                smooth(0.60F, 0.52F), smooth(0.30F, 0.60F), smooth(0.18F, 0.76F)};
constexpr std::array kSixStraight{start(0.30F, 0.00F),  smooth(0.18F, 0.45F), smooth(0.20F, 0.85F),
                                  smooth(0.50F, 1.00F), smooth(0.80F, 0.82F), smooth(0.70F, 0.56F),
                                  smooth(0.40F, 0.55F), smooth(0.20F, 0.78F)};

constexpr std::array kSevenPlain{start(0.10F, 0.04F), corner(0.85F, 0.04F), corner(0.40F, 1.00F)};
constexpr std::array kSevenBarred{start(0.10F, 0.04F), corner(0.85F, 0.04F), corner(0.40F, 1.00F),
                                  start(0.30F, 0.50F), corner(0.82F, 0.48F)};
constexpr std::array kSevenCurved{start(0.12F, 0.18F), corner(0.14F, 0.04F), corner(0.85F, 0.06F),
                                  smooth(0.58F, 0.45F), smooth(0.45F, 1.00F)};

constexpr std::array kEightOneStroke{
    start(0.75F, 0.12F),  smooth(0.45F, 0.00F), smooth(0.20F, 0.20F), smooth(0.45F, 0.46F),
    smooth(0.78F, 0.74F), smooth(0.50F, 1.00F), smooth(0.18F, 0.76F), smooth(0.50F, 0.48F),
    smooth(0.78F, 0.20F), smooth(0.70F, 0.08F)};
constexpr std::array kEightTwoRings{
    start(0.50F, 0.47F),  smooth(0.24F, 0.25F), smooth(0.50F, 0.01F), smooth(0.76F, 0.25F),
    smooth(0.50F, 0.47F), start(0.50F, 0.47F),  smooth(0.18F, 0.74F), smooth(0.50F, 1.00F),
    smooth(0.82F, 0.74F), smooth(0.50F, 0.47F)};

constexpr std::array kNineStraight{start(0.78F, 0.12F),  smooth(0.42F, 0.02F), smooth(0.18F, 0.26F),
                                   smooth(0.38F, 0.50F), smooth(0.70F, 0.38F), corner(0.80F, 0.10F),
                                   corner(0.72F, 1.00F)};
constexpr std::array kNineCurved{start(0.76F, 0.20F),  smooth(0.45F, 0.02F), smooth(0.20F, 0.25F),
                                 smooth(0.42F, 0.48F), corner(0.77F, 0.24F), smooth(0.78F, 0.55F),
                                 smooth(0.60F, 0.90F), smooth(0.25F, 0.98F)};

constexpr std::array<DigitStyle, 2> kZero{kZeroClosed, kZeroOpenTop};
constexpr std::array<DigitStyle, 3> kOne{kOneBar, kOneFlag, kOneFlagAndBase};
constexpr std::array<DigitStyle, 3> kTwo{kTwoPlain, kTwoLoop, kTwoWide};
constexpr std::array<DigitStyle, 3> kThree{kThreeRound, kThreeFlatTop, kThreeLoop};
constexpr std::array<DigitStyle, 3> kFour{kFourOpen, kFourClosed, kFourCurved};
constexpr std::array<DigitStyle, 3> kFive{kFiveCorners, kFiveTwoStrokes, kFiveCurved};
constexpr std::array<DigitStyle, 2> kSix{kSixCurved, kSixStraight};
constexpr std::array<DigitStyle, 3> kSeven{kSevenPlain, kSevenBarred, kSevenCurved};
constexpr std::array<DigitStyle, 2> kEight{kEightOneStroke, kEightTwoRings};
constexpr std::array<DigitStyle, 2> kNine{kNineStraight, kNineCurved};

constexpr std::array<std::span<const DigitStyle>, kDigitClasses> kStyles{
    kZero, kOne, kTwo, kThree, kFour, kFive, kSix, kSeven, kEight, kNine};

}  // namespace

std::span<const DigitStyle> digit_styles(std::uint8_t label) noexcept {
  assert(label < kDigitClasses);
  return kStyles[label];
}

}  // namespace disttf::data
