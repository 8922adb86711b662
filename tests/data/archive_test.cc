// Extraction from archives with a pinned SHA-256. The test creates all archives itself.
#include "data/archive.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <system_error>

#include "data/checksums.h"
#include "data/error.h"
#include "data/file.h"
#include "data/tar.h"
#include "data/zip.h"
#include "tests/data/archives.h"

namespace disttf::data {
namespace {

using test::Bytes;

class ArchiveTest : public ::testing::TestWithParam<ArchiveKind> {
 protected:
  ArchiveTest() { put({{"f/a", a_}, {"f/b.gz", test::gzip(b_)}}); }

  static Bytes pack(const std::vector<test::PackedFile>& files) {
    return GetParam() == ArchiveKind::kZip ? test::zip(files) : test::gzip(test::tar(files));
  }
  void put(const std::vector<test::PackedFile>& files) { put(pack(files)); }
  // Writes the bytes as the archive and pins them, right or wrong.
  void put(const Bytes& bytes) {
    packed_ = bytes;
    sha256_ = sha256_hex(std::as_bytes(std::span(packed_)));
    archive_ = {
        .name = "pack", .kind = GetParam(), .size_bytes = packed_.size(), .sha256 = sha256_};
    test::write(path(), packed_);
    std::filesystem::remove(checksum_marker_path(path()));
  }

  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "pack"; }
  [[nodiscard]] FileCheck check() const { return check_archive(directory_.path(), archive_); }
  [[nodiscard]] std::vector<Bytes> extract(const std::vector<ArchiveMember>& members) const {
    return extract_members(directory_.path(), archive_, members);
  }
  [[nodiscard]] std::string refusal(const std::vector<ArchiveMember>& members) const {
    return test::refusal_of([&] { static_cast<void>(extract(members)); }, directory_.path());
  }

  test::ScratchDirectory directory_;
  Bytes a_ = test::noise(5000, 1);
  Bytes b_ = test::noise(300'000, 2);
  Bytes packed_;
  std::string sha256_;
  Archive archive_;
};

TEST_P(ArchiveTest, GivesTheMembersInTheOrderAskedFor) {
  EXPECT_EQ(extract({{"f/b.gz", b_.size()}, {"f/a", a_.size()}}), (std::vector<Bytes>{b_, a_}));
  EXPECT_EQ(extract({{"f/a", a_.size()}}), std::vector<Bytes>{a_});
}

TEST_P(ArchiveTest, IsCheckedOnceAndThenByItsChecksumMarker) {
  EXPECT_EQ(check().state, FileState::kReady);
  EXPECT_TRUE(std::filesystem::exists(checksum_marker_path(path())));
  EXPECT_EQ(check().state, FileState::kReady);
  Bytes flipped = packed_;
  flipped[100] ^= 1;
  test::write(path(), flipped);
  EXPECT_EQ(check().error, DataError::kWrongChecksum) << "the checksum marker is of another file";
}

TEST_P(ArchiveTest, IsRefusedWhereItIsAbsent) {
  std::filesystem::remove(path());
  EXPECT_EQ(check().state, FileState::kAbsent);
  EXPECT_EQ(refusal({{"f/a", a_.size()}}), "cannot read pack: No such file or directory");
}

TEST_P(ArchiveTest, IsRefusedWhereItIsTruncated) {
  std::filesystem::resize_file(path(), packed_.size() - 1);
  EXPECT_EQ(refusal({{"f/a", a_.size()}}), "pack: expected " + std::to_string(packed_.size()) +
                                               " bytes, found " +
                                               std::to_string(packed_.size() - 1) + ": wrong size");
}

TEST_P(ArchiveTest, IsRefusedWithAnotherSum) {
  const std::string expected = sha256_;
  Bytes flipped = packed_;
  flipped[50] ^= 1;
  test::write(path(), flipped);
  EXPECT_EQ(refusal({{"f/a", a_.size()}}), "pack: expected SHA-256 " + expected + ", found " +
                                               sha256_hex(std::as_bytes(std::span(flipped))) +
                                               ": wrong checksum");
}

TEST_P(ArchiveTest, IsRefusedWithoutTheMember) {
  const std::string kind = GetParam() == ArchiveKind::kZip ? "zip file" : "tar archive";
  EXPECT_EQ(refusal({{"f/a", a_.size()}, {"f/c", 1}}),
            "pack, member f/c: the " + kind + " has no such member");
}

TEST_P(ArchiveTest, IsRefusedWithAMemberOfAnotherSize) {
  EXPECT_NE(refusal({{"f/a", a_.size() + 1}}).find("member f/a: expected 5001 bytes, found 5000"),
            std::string::npos)
      << refusal({{"f/a", a_.size() + 1}});
  EXPECT_NE(refusal({{"f/a", a_.size() - 1}}).find("member f/a"), std::string::npos);
}

TEST_P(ArchiveTest, IsRefusedWithAGzOfAnotherSize) {
  EXPECT_EQ(refusal({{"f/b.gz", b_.size() - 1}}),
            "pack, member f/b.gz: the gzip file expands to more than the limit");
  EXPECT_NE(refusal({{"f/b.gz", b_.size() + 1}}).find("expected 300001 bytes, found 300000"),
            std::string::npos);
}

TEST_P(ArchiveTest, IsRefusedWithAGzThatIsNone) {
  put({{"f/a.gz", a_}});
  EXPECT_EQ(refusal({{"f/a.gz", a_.size()}}), "pack, member f/a.gz: not a gzip file");
}

// Covers pinned contents that are themselves damaged.
TEST_P(ArchiveTest, IsRefusedWhereItBreaksOffAndIsPinnedSo) {
  const Bytes whole = packed_;
  put(Bytes(whole.begin(), whole.begin() + static_cast<long>(whole.size() / 2)));
  EXPECT_EQ(refusal({{"f/a", a_.size()}}), GetParam() == ArchiveKind::kZip
                                               ? "pack, member f/a: not a zip file"
                                               : "pack: the gzip file is truncated");
}

INSTANTIATE_TEST_SUITE_P(Kinds, ArchiveTest,
                         ::testing::Values(ArchiveKind::kZip, ArchiveKind::kTarGz),
                         [](const auto& kind) {
                           return kind.param == ArchiveKind::kZip ? "Zip" : "TarGz";
                         });

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
