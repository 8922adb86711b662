// Extraction from archives with a pinned SHA-256. The test creates all archives itself.
#include "data/archive.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "data/error.h"
#include "data/sha256.h"
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

}  // namespace
}  // namespace disttf::data
