#include "data/digits.h"

#include <gtest/gtest.h>

#include <array>
#include <system_error>

#include "data/error.h"
#include "data/idx.h"
#include "data/sha256.h"
#include "math/random.h"
#include "tests/data/scratch.h"

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
  try {
    static_cast<void>(
        open_digits(directory.path(), {.purpose = 99, .random_bits = &math::random_bits}));
    FAIL() << "no exception";
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.code(), DataError::kWrongChecksum);
  }
}

}  // namespace
}  // namespace disttf::data
