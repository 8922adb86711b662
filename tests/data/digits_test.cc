#include "data/digits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>

#include "data/checksums.h"
#include "data/digits_draw.h"
#include "data/error.h"
#include "data/idx.h"
#include "math/random.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::data {
namespace {

using Files = std::array<std::vector<std::uint8_t>, 4>;

constexpr DigitsRandomness kProduction{
    .purpose = static_cast<std::uint32_t>(math::Purpose::kDigits),
    .random_bits = &math::random_bits};

// Generated once: drawing 70 000 images takes a second, and much longer under a sanitizer.
const Files& files() {
  static const Files made = make_digits(kProduction);
  return made;
}

// The images must be bit-identical on every machine and build. A failure means that the machine's
// arithmetic is not IEEE 754, or that the drawing was changed. An intentional change needs new pins
// in data/digits.cc, and results on digits before and after it are not comparable.
TEST(Digits, HaveThePinnedChecksums) {
  Sha256 identity;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto bytes = std::as_bytes(std::span(files()[i]));
    EXPECT_EQ(sha256_hex(bytes), digits().files[i].sha256) << digits().files[i].name;
    identity.update(bytes);
  }
  EXPECT_EQ(identity.hex(), digits().checksum);
}

TEST(Digits, HaveEquallyManyOfEachClass) {
  for (const std::size_t part : {std::size_t{1}, std::size_t{3}}) {
    std::span<const std::uint8_t> labels;
    std::string detail;
    ASSERT_FALSE(parse_labels(files()[part], 10, labels, detail)) << detail;
    std::array<std::size_t, 10> counts{};
    for (const std::uint8_t label : labels) ++counts[label];
    for (const std::size_t count : counts) EXPECT_EQ(count, labels.size() / 10);
  }
}

TEST(Digits, ComeInRandomOrder) {
  std::span<const std::uint8_t> labels;
  std::string detail;
  ASSERT_FALSE(parse_labels(files()[1], 10, labels, detail)) << detail;
  std::size_t repeats = 0;  // of the previous label: a tenth in random order
  for (std::size_t i = 1; i < labels.size(); ++i) repeats += labels[i] == labels[i - 1] ? 1U : 0U;
  EXPECT_NEAR(static_cast<double>(repeats), 6000.0, 500.0);
}

TEST(Digits, AreWrittenOnceAndMappedAfterwards) {
  const test::ScratchDirectory directory;
  const Dataset made = open_digits(directory.path(), kProduction);
  EXPECT_EQ(made.name, "Digits");
  EXPECT_EQ(made.train.labels.size(), 55000U);
  EXPECT_EQ(directory.names().size(), 8U) << "four files, four stamps";
  // A null function: everything must come from the files.
  const Dataset mapped = open_digits(directory.path(), {.purpose = 0, .random_bits = nullptr});
  EXPECT_EQ(mapped.checksum, made.checksum);
  EXPECT_TRUE(std::equal(mapped.test.images.begin(), mapped.test.images.end(),
                         made.test.images.begin(), made.test.images.end()));
}

TEST(Digits, AreHeldInMemoryWhereNothingCanBeWritten) {
  std::vector<std::string> warnings;
  const Dataset dataset =
      open_digits("/proc", kProduction,
                  {.on_warning = [&](const std::string& text) { warnings.push_back(text); }});
  EXPECT_EQ(dataset.test.labels.size(), 10000U);
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(Digits, RefuseRandomnessOtherThanProductions) {
  const test::ScratchDirectory directory;
  const auto error = thrown<std::system_error>([&] {
    return open_digits(directory.path(), {.purpose = 99, .random_bits = &math::random_bits});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), DataError::kWrongChecksum);
}

using Image = std::array<std::uint8_t, kDigitPixels>;

Image drawn(std::uint8_t label, std::uint64_t random_seed) {
  Image image;
  draw_digit(label, random_seed, image);
  return image;
}

// Calls `test` with many images of every label.
template <typename Test>
void for_many_images(Test test) {
  for (std::uint8_t label = 0; label < kDigitClasses; ++label) {
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      SCOPED_TRACE(::testing::Message() << "label " << int{label} << ", seed " << seed);
      test(drawn(label, seed));
    }
  }
}

TEST(DigitStrokes, EveryDigitHasStylesThatStayInTheUnitSquare) {
  for (std::uint8_t label = 0; label < kDigitClasses; ++label) {
    EXPECT_GE(digit_styles(label).size(), 2U);
    for (const DigitStyle style : digit_styles(label)) {
      EXPECT_LE(style.size(), 16U) << "more than a drawing holds";
      EXPECT_EQ(style.front().kind, NodeKind::kStart);
      EXPECT_NE(style.back().kind, NodeKind::kStart);
      for (const StrokeNode& node : style) {
        EXPECT_TRUE(node.x >= 0 && node.x <= 1 && node.y >= 0 && node.y <= 1);
      }
    }
  }
}

TEST(DrawDigit, DrawsTheSameFromTheSameSeed) { EXPECT_EQ(drawn(5, 123), drawn(5, 123)); }

TEST(DrawDigit, NeverDrawsTwoAlike) {
  std::set<Image> images;
  for (std::uint64_t seed = 0; seed < 500; ++seed) images.insert(drawn(3, seed));
  EXPECT_EQ(images.size(), 500U);
}

TEST(DrawDigit, TheLabelDecidesTheShape) { EXPECT_NE(drawn(1, 7), drawn(8, 7)); }

TEST(DrawDigit, LeavesMostOfThePaperBlank) {
  for_many_images([](const Image& image) {
    const auto blank = std::count(image.begin(), image.end(), 0);
    EXPECT_GT(blank, 392);  // half of the pixels
    EXPECT_LT(blank, 760);
  });
}

TEST(DrawDigit, InksTheMiddleOfAStrokeDark) {
  for_many_images([](const Image& image) {
    EXPECT_GT(int{*std::max_element(image.begin(), image.end())}, 150);
  });
}

TEST(DrawDigit, HasGreyEdges) {
  for_many_images([](const Image& image) {
    EXPECT_GT(std::count_if(image.begin(), image.end(), [](int v) { return v > 0 && v < 128; }), 4);
  });
}

TEST(DrawDigit, PutsTheCentreOfMassNearTheMiddle) {
  for_many_images([](const Image& image) {
    double total = 0;
    double x = 0;
    double y = 0;
    for (std::size_t i = 0; i < kDigitPixels; ++i) {
      total += image[i];
      x += image[i] * (static_cast<double>(i % kDigitSide) + 0.5);
      y += image[i] * (static_cast<double>(i / kDigitSide) + 0.5);
    }
    EXPECT_NEAR(x / total, 14.0, 3.0);
    EXPECT_NEAR(y / total, 14.0, 3.0);
  });
}

}  // namespace
}  // namespace disttf::data
