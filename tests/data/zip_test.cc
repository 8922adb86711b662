#include "data/zip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "data/error.h"
#include "data/file.h"
#include "data/zip_writer.h"
#include "tests/data/archives.h"

namespace disttf::data {
namespace {

using test::Bytes;

constexpr std::size_t kMostOfMember = 1U << 20U;

class ZipTest : public ::testing::Test {
 protected:
  std::error_code error_of(const Bytes& archive, std::string_view name,
                           std::size_t max_bytes = kMostOfMember) {
    Bytes out{1, 2, 3};
    const std::error_code error = read_zip_member(zip_source(archive), name, max_bytes, out);
    EXPECT_TRUE(!error || out.empty()) << "something was left in the output";
    return error;
  }
  Bytes contents_of(const Bytes& archive, std::string_view name) {
    Bytes out;
    const std::error_code error = read_zip_member(zip_source(archive), name, kMostOfMember, out);
    EXPECT_FALSE(error) << error.message();
    return out;
  }
  // Returns the position of the only member's entry in the directory.
  static std::size_t entry_of(const Bytes& archive) {
    const Bytes magic = {'P', 'K', 1, 2};
    const auto found = std::ranges::search(archive, magic);
    return static_cast<std::size_t>(found.begin() - archive.begin());
  }

  Bytes small_ = test::noise(1000, 1);
  Bytes large_ = Bytes(300'000, 7);
  Bytes archive_ = test::zip({{"folder/small", small_}, {"empty", {}}, {"large", large_}});
};

TEST_F(ZipTest, GivesBackWhatWasPacked) {
  EXPECT_EQ(contents_of(archive_, "folder/small"), small_);
  EXPECT_EQ(contents_of(archive_, "large"), large_);
  EXPECT_EQ(contents_of(archive_, "empty"), Bytes{});
}

TEST_F(ZipTest, ListsNamesAndSizesInOrder) {
  std::vector<ZipMember> members;
  ASSERT_FALSE(list_zip(zip_source(archive_), members));
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].name, "folder/small");
  EXPECT_EQ(members[0].size_bytes, 1000U);
  EXPECT_EQ(members[2].name, "large");
  EXPECT_EQ(members[2].size_bytes, 300'000U);
}

TEST_F(ZipTest, ReadsAnOpenFile) {
  const test::ScratchDirectory directory;
  test::write(directory.path() / "a.zip", archive_);
  struct stat status {};
  const FileDescriptor file = open_for_reading(directory.path() / "a.zip", status);
  Bytes out;
  ASSERT_FALSE(
      read_zip_member(zip_source(file.number(), archive_.size()), "large", kMostOfMember, out));
  EXPECT_EQ(out, large_);
}

TEST_F(ZipTest, KnowsNamesToTheLetter) {
  EXPECT_EQ(error_of(archive_, "Large"), DataError::kZipNoMember);
  EXPECT_EQ(error_of(archive_, "small"), DataError::kZipNoMember);
  EXPECT_EQ(error_of(archive_, ""), DataError::kZipNoMember);
}

TEST_F(ZipTest, RefusesAMemberThatIsLargerThanAllowed) {
  EXPECT_EQ(error_of(archive_, "large", 299'999), DataError::kZipTooLarge);
  EXPECT_FALSE(error_of(archive_, "large", 300'000));
}

TEST_F(ZipTest, RefusesWhatIsNotZip) {
  EXPECT_EQ(error_of({}, "a"), DataError::kNotZip);
  EXPECT_EQ(error_of(test::bytes_of("<html><body>404</body></html>"), "a"), DataError::kNotZip);
}

// The directory is at the end, so a truncated file has none.
TEST_F(ZipTest, RefusesATruncatedOne) {
  for (const std::size_t size : {archive_.size() - 1, archive_.size() / 2, std::size_t{40}}) {
    EXPECT_EQ(
        error_of(Bytes(archive_.begin(), archive_.begin() + static_cast<long>(size)), "large"),
        DataError::kNotZip)
        << size;
  }
}

TEST_F(ZipTest, RefusesContentsThatDoNotFitTheirSum) {
  Bytes archive = test::zip({{"a", small_}});
  archive[100] ^= 1;
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipCorrupt);
}

// Declared sizes of one byte more, one byte less, and 4 GB: only received bytes are allocated.
TEST_F(ZipTest, RefusesADirectoryThatLiesAboutASize) {
  const Bytes honest = test::zip({{"a", small_}});
  const std::size_t size_at = entry_of(honest) + 24;
  Bytes archive = honest;
  ++archive[size_at];
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipCorrupt);
  archive = honest;
  --archive[size_at];
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipCorrupt);
  archive = honest;
  std::fill_n(archive.begin() + static_cast<long>(size_at), 3, 0xff);
  archive[size_at + 3] = 0x7f;
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipTooLarge);
  EXPECT_EQ(error_of(archive, "a", std::size_t{1} << 40U), DataError::kZipCorrupt);
}

TEST_F(ZipTest, RefusesAnEncryptedMember) {
  Bytes archive = test::zip({{"a", small_}});
  archive[entry_of(archive) + 8] |= 1;  // encryption flag
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipBadMethod);
}

TEST_F(ZipTest, RefusesAnotherWayOfCompressing) {
  Bytes archive = test::zip({{"a", small_}});
  archive[entry_of(archive) + 10] = 12;  // bzip2
  EXPECT_EQ(error_of(archive, "a"), DataError::kZipBadMethod);
}

TEST_F(ZipTest, RefusesASourceThatCannotBeRead) {
  const ZipSource broken{.size_bytes = 1000,
                         .read = [](std::uint64_t, std::span<std::uint8_t>) { return false; }};
  Bytes out;
  EXPECT_EQ(read_zip_member(broken, "a", kMostOfMember, out), DataError::kNotZip);
}

TEST_F(ZipTest, WhatIsStoredIsReadBack) {
  const Bytes empty;
  const Bytes other = {'o', 't'};
  const std::vector<StoredMember> members = {{.name = "a", .parts = {small_, other}},
                                             {.name = "folder/b", .parts = {empty}},
                                             {.name = "c", .parts = {other}}};
  const std::string file = stored_zip(members);
  const ZipSource source =
      zip_source({reinterpret_cast<const std::uint8_t*>(file.data()), file.size()});
  std::vector<ZipMember> listed;
  ASSERT_FALSE(list_zip(source, listed));
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[1].name, "folder/b");
  Bytes expected = small_;
  expected.insert(expected.end(), other.begin(), other.end());
  Bytes out;
  ASSERT_FALSE(read_zip_member(source, "a", kMostOfMember, out));
  EXPECT_EQ(out, expected);
  ASSERT_FALSE(read_zip_member(source, "c", kMostOfMember, out));
  EXPECT_EQ(out, other);
}

}  // namespace
}  // namespace disttf::data
