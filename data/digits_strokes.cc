#include "data/digits_strokes.h"

#include <array>
#include <cassert>

#include "data/digits_draw.h"

namespace disttf::data {
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
