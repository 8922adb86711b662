#include "data/tar.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>

#include "data/error.h"
#include "tests/data/archives.h"

namespace disttf::data {
namespace {

using test::Bytes;
using test::TarForm;

struct Unpacked {
  std::error_code error;
  std::map<std::string, Bytes> files;
};

// Unpacks in pieces of `piece_bytes`.
Unpacked unpack(const Bytes& archive, std::size_t piece_bytes = 1U << 20U) {
  Unpacked result;
  TarReader tar(
      [&](std::string_view name, std::uint64_t) { return &result.files[std::string(name)]; });
  for (std::span<const std::uint8_t> left = archive; !left.empty() && !result.error;) {
    const auto piece = left.first(std::min(piece_bytes, left.size()));
    left = left.subspan(piece.size());
    result.error = tar.take(piece);
  }
  if (!result.error) result.error = tar.end();
  return result;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class TarTest : public ::testing::TestWithParam<TarForm> {
 protected:
  Bytes a_ = test::noise(1000, 1);
  Bytes b_ = test::noise(1024, 2);
  Bytes archive_ = test::tar({{"folder/a", a_}, {"folder/b", b_}, {"empty", {}}}, GetParam());
};

TEST_P(TarTest, GivesBackWhatWasPacked) {
  const Unpacked unpacked = unpack(archive_);
  ASSERT_FALSE(unpacked.error) << unpacked.error.message();
  EXPECT_EQ(unpacked.files,
            (std::map<std::string, Bytes>{{"folder/a", a_}, {"folder/b", b_}, {"empty", {}}}));
}

TEST_P(TarTest, TakesPiecesOfAnySize) {
  const Unpacked whole = unpack(archive_);
  for (const std::size_t size : {1U, 7U, 511U, 512U, 513U}) {
    const Unpacked unpacked = unpack(archive_, size);
    ASSERT_FALSE(unpacked.error) << size;
    EXPECT_EQ(unpacked.files, whole.files) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, TarTest, ::testing::Values(TarForm::kGnu, TarForm::kPosix));

TEST(Tar, JoinsPrefixAndNameOfPosix) {
  Bytes header = test::tar_header("a", 0, '0', TarForm::kPosix);
  header[345] = 'p';
  test::put_tar_sum(header);
  const Unpacked unpacked = unpack(joined({header, test::tar_end()}));
  ASSERT_FALSE(unpacked.error) << unpacked.error.message();
  EXPECT_TRUE(unpacked.files.contains("p/a"));
}

TEST(Tar, PassesOverWhatIsNoFile) {
  const Bytes archive =
      joined({test::tar_header("folder/", 0, '5'), test::tar_header("long", 512, 'L'),
              Bytes(512, 1), test::tar_header("link", 0, '2'), test::tar_header("a", 512),
              Bytes(512, 2), test::tar_end()});
  const Unpacked unpacked = unpack(archive);
  ASSERT_FALSE(unpacked.error) << unpacked.error.message();
  EXPECT_EQ(unpacked.files, (std::map<std::string, Bytes>{{"a", Bytes(512, 2)}}));
}

TEST(Tar, DoesNotMindWhatFollowsTheEnd) {
  const Bytes archive = joined({test::tar({{"a", {1}}}), Bytes(10'240), Bytes(100, 9)});
  EXPECT_FALSE(unpack(archive).error);
}

TEST(Tar, RefusesOneThatBreaksOff) {
  const Bytes archive = test::tar({{"a", Bytes(600, 1)}});
  // Cuts in a header, in contents, in padding, and before the end.
  for (const long size : {100, 700, 1200, 1536}) {
    EXPECT_EQ(unpack(Bytes(archive.begin(), archive.begin() + size)).error,
              DataError::kTarTruncated)
        << size;
  }
  EXPECT_EQ(unpack({}).error, DataError::kTarTruncated);
}

TEST(Tar, RefusesAHeaderThatDoesNotFitItsSum) {
  for (const std::size_t place : {0U, 130U, 150U, 257U, 511U}) {
    Bytes archive = test::tar({{"a", Bytes(600, 1)}});
    archive[place] ^= 1;
    EXPECT_EQ(unpack(archive).error, DataError::kTarBadHeader) << place;
  }
}

TEST(Tar, RefusesWhatIsNoTar) {
  EXPECT_EQ(unpack(test::noise(2000, 3)).error, DataError::kTarBadHeader);
}

// A header that declares 8 GiB without any contents: nothing may be allocated for them.
TEST(Tar, AHeaderThatLiesAboutASizeCostsNothing) {
  Bytes archive = joined({test::tar_header("a", (std::size_t{1} << 33U) - 1), Bytes(512, 1)});
  const Unpacked unpacked = unpack(archive);
  EXPECT_EQ(unpacked.error, DataError::kTarTruncated);
  EXPECT_EQ(unpacked.files.at("a").size(), 512U);
}

// GNU's form for sizes above 8 GiB.
TEST(Tar, RefusesASizeThatIsNotOctal) {
  for (const char digit : {'8', 'x', '\x80'}) {
    Bytes header = test::tar_header("a", 0);
    header[124] = static_cast<std::uint8_t>(digit);
    test::put_tar_sum(header);
    EXPECT_EQ(unpack(joined({header, test::tar_end()})).error, DataError::kTarBadHeader) << digit;
  }
}

}  // namespace
}  // namespace disttf::data
