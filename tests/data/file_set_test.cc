#include "data/file_set.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "data/error.h"
#include "data/idx.h"
#include "tests/data/file_set_fixture.h"
#include "tests/support/thrown.h"

namespace disttf::data {
namespace {

TEST_F(FileSetTest, OpensWhatItExtracts) {
  put_all_gz();
  const Dataset dataset = open();
  EXPECT_TRUE(is_right(dataset));
  EXPECT_EQ(dataset.name, "Tiny");
  EXPECT_EQ(dataset.checksum, "identity");
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(FileSetTest, SplitsOffTheFirstTrainingRowsForValidation) {
  put_all_gz();
  const Dataset dataset = open();
  EXPECT_EQ(dataset.validation.labels.size(), 5U);
  EXPECT_EQ(dataset.validation.images.size(), 5U * 784);
  EXPECT_EQ(dataset.validation.labels[0], contents_[1][8]);
  EXPECT_EQ(dataset.train.labels.size(), 25U);
  EXPECT_EQ(dataset.train.images.size(), 25U * 784);
  EXPECT_EQ(dataset.test.labels.size(), 10U);
}

TEST_F(FileSetTest, ExtractsEachFileOnce) {
  put_all_gz();
  static_cast<void>(open());
  EXPECT_EQ(extractions_, (std::vector<std::string>{"train-images.gz", "train-labels.gz",
                                                    "test-images.gz", "test-labels.gz"}));
  EXPECT_TRUE(is_right(open()));
  EXPECT_TRUE(extractions_.empty());
}

TEST_F(FileSetTest, WritesTheContentsToTheByteAndNothingElse) {
  put_all_gz();
  static_cast<void>(open());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(test::read(extracted(i)), contents_[i]) << i;
  EXPECT_TRUE(leftovers().empty());
}

TEST_F(FileSetTest, NeedsNoGzOnceExtracted) {
  put_all_gz();
  static_cast<void>(open());
  for (std::size_t i = 0; i < 4; ++i) std::filesystem::remove(gz(i));
  EXPECT_TRUE(is_right(open()));
}

TEST_F(FileSetTest, TakesFilesThatAnotherUserExtracted) {
  for (std::size_t i = 0; i < 4; ++i) test::write(extracted(i), contents_[i]);
  EXPECT_TRUE(is_right(open()));
  EXPECT_TRUE(extractions_.empty());
}

TEST_F(FileSetTest, TheDataOutlivesTheFiles) {
  put_all_gz();
  const Dataset dataset = open();
  std::filesystem::remove_all(at());
  EXPECT_TRUE(is_right(dataset));
}

// --- check_gz, check_file ---

TEST_F(FileSetTest, CheckFindsAnAbsentFile) {
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.state, FileState::kAbsent);
  EXPECT_EQ(check.sentence(), "cannot read " + gz(0).string() + ": No such file or directory");
}

TEST_F(FileSetTest, CheckFindsAnAbsentDirectory) {
  EXPECT_EQ(check_file(at() / "absent", files_[0]).state, FileState::kAbsent);
}

TEST_F(FileSetTest, CheckAcceptsARightGzUnderAnyName) {
  test::write(at() / "part", gz_[0]);
  EXPECT_EQ(check_gz(at() / "part", files_[0]).state, FileState::kReady);
}

TEST_F(FileSetTest, CheckAcceptsARightExtractedFile) {
  test::write(extracted(1), contents_[1]);
  EXPECT_EQ(check_file(at(), files_[1]).state, FileState::kReady);
}

TEST_F(FileSetTest, CheckNamesExpectedAndFoundSize) {
  test::write(gz(0), test::bytes_of("<html>"));
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.state, FileState::kWrong);
  EXPECT_EQ(check.error, DataError::kWrongSize);
  EXPECT_EQ(check.what,
            gz(0).string() + ": expected " + std::to_string(gz_[0].size()) + " bytes, found 6");
}

TEST_F(FileSetTest, CheckNamesExpectedAndFoundChecksum) {
  Bytes wrong = gz_[0];
  wrong[20] ^= 1;
  test::write(gz(0), wrong);
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.error, DataError::kWrongChecksum);
  EXPECT_EQ(check.what,
            gz(0).string() + ": expected SHA-256 " + hashes_[0][1] + ", found " + hash(wrong));
}

TEST_F(FileSetTest, CheckReportsAWrongExtractedFileWhenThereIsNoGz) {
  test::write(extracted(0), test::bytes_of("hello"));
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.state, FileState::kWrong);
  EXPECT_EQ(check.what.find(extracted(0).string()), 0U) << check.what;
}

TEST_F(FileSetTest, CheckReportsADirectoryInPlaceOfAFile) {
  std::filesystem::create_directory(gz(0));
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.state, FileState::kWrong);
  EXPECT_EQ(check.sentence(), "cannot read " + gz(0).string() + ": Is a directory");
}

// --- wrong files are refused and kept ---

TEST_F(FileSetTest, RefusesASetWithAFileMissing) {
  put_all_gz();
  std::filesystem::remove(gz(3));
  const std::system_error error = error_of_open();
  EXPECT_EQ(error.code(), std::errc::no_such_file_or_directory);
  EXPECT_EQ(std::string(error.what()).find("cannot read " + gz(3).string()), 0U) << error.what();
}

TEST_F(FileSetTest, RefusesAWrongGzAndLeavesIt) {
  put_all_gz();
  Bytes wrong = gz_[2];
  wrong.back() ^= 1;
  test::write(gz(2), wrong);
  const std::system_error error = error_of_open();
  EXPECT_EQ(error.code(), DataError::kWrongChecksum);
  EXPECT_EQ(test::read(gz(2)), wrong);
}

TEST_F(FileSetTest, RefusesATruncatedGz) {
  put_all_gz();
  std::filesystem::resize_file(gz(0), gz_[0].size() - 1);
  EXPECT_EQ(error_of_open().code(), DataError::kWrongSize);
}

TEST_F(FileSetTest, RefusesAGzThatHasTheRightChecksumAndIsDamaged) {
  put_all_gz();
  Bytes damaged = gz_[0];
  damaged[damaged.size() - 8] ^= 1;  // the CRC
  test::write(gz(0), damaged);
  hashes_[0][1] = hash(damaged);
  files_[0].gz_sha256 = hashes_[0][1];
  const std::system_error error = error_of_open();
  EXPECT_EQ(error.code(), DataError::kGzipCorrupt);
  EXPECT_EQ(error.what(), gz(0).string() + ": the gzip file is corrupt");
}

TEST_F(FileSetTest, RefusesAGzOfOtherContents) {
  put_all_gz();
  Bytes other = contents_[0];
  other.back() ^= 1;
  const Bytes other_gz = test::gzip(other);
  test::write(gz(0), other_gz);
  hashes_[0][1] = hash(other_gz);
  files_[0].gz_sha256 = hashes_[0][1];
  files_[0].gz_bytes = other_gz.size();
  EXPECT_EQ(error_of_open().code(), DataError::kWrongChecksum);
  EXPECT_FALSE(std::filesystem::exists(extracted(0)));
}

TEST_F(FileSetTest, RefusesPinnedContentsThatAreNotIdx) {
  contents_[1][8] = 10;  // a label above 9
  hashes_[1][0] = hash(contents_[1]);
  files_[1].sha256 = hashes_[1][0];
  for (std::size_t i = 0; i < 4; ++i) test::write(extracted(i), contents_[i]);
  const std::system_error error = error_of_open();
  EXPECT_EQ(error.code(), DataError::kBadLabel);
  EXPECT_EQ(std::string(error.what()).find("train-labels: expected labels 0 to 9, found 10"), 0U)
      << error.what();
}

TEST_F(FileSetTest, RefusesAnImageFileOfOtherRowsThanPinned) {
  for (std::size_t i = 0; i < 4; ++i) test::write(extracted(i), contents_[i]);
  std::vector<Bytes> contents(contents_.begin(), contents_.end());
  contents[2] = contents_[0];  // 30 rows instead of 10
  EXPECT_THROW(static_cast<void>(assemble(set_, std::move(contents))), std::system_error);
}

TEST_F(FileSetTest, TakesAGzThatAPackageHasCompressedAnew) {
  put_all_gz();
  Bytes repacked = gz_[0];
  repacked[9] ^= 1;  // the header's operating system, which does not matter
  repacked.insert(repacked.begin() + 10, {'n', 0});
  repacked[3] = 8;  // flag for a name
  test::write(gz(0), repacked);
  EXPECT_EQ(error_of_open().code(), DataError::kWrongSize);
  const std::string repacked_hash = hash(repacked);
  files_[0].other_gz_bytes = repacked.size();
  files_[0].other_gz_sha256 = repacked_hash;
  EXPECT_TRUE(is_right(open()));
}

TEST_F(FileSetTest, ExtractsFromAnotherDirectoryAndWritesNothingThere) {
  const test::ScratchDirectory package;
  for (std::size_t i = 0; i < 4; ++i) test::write(package.path() / files_[i].gz_name(), gz_[i]);
  EXPECT_TRUE(provides(package.path(), set_));
  EXPECT_FALSE(provides(at(), set_));
  EXPECT_TRUE(is_right(open_file_set(at(), set_, {.gz_directory = package.path()})));
  EXPECT_EQ(package.names().size(), 4U);
  EXPECT_TRUE(is_right(open())) << "what was extracted is in the directory";
}

TEST_F(FileSetTest, UsesTheGzInPlaceOfAWrongExtractedFileAndLeavesThat) {
  put_all_gz();
  test::write(extracted(0), test::bytes_of("mine"));
  EXPECT_TRUE(is_right(open()));
  EXPECT_EQ(test::read(extracted(0)), test::bytes_of("mine"));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0], extracted(0).string() +
                              ": expected 23536 bytes, found 4: wrong size; it "
                              "stays where it is and is not used");
}

TEST_F(FileSetTest, ReplacesAWrongExtractedFileWhenAskedTo) {
  put_all_gz();
  test::write(extracted(0), test::bytes_of("broken"));
  EXPECT_TRUE(is_right(open(true)));
  EXPECT_EQ(test::read(extracted(0)), contents_[0]);
  EXPECT_TRUE(warnings_.empty());
}

// --- checksum markers ---

TEST_F(FileSetTest, NoticesAFlippedBitInAnExtractedFile) {
  put_all_gz();
  static_cast<void>(open());
  Bytes flipped = contents_[0];
  flipped[1000] ^= 1;
  test::write(extracted(0), flipped);  // the same size and inode, other times
  const FileCheck check = check_file(at(), files_[0]);
  EXPECT_EQ(check.state, FileState::kReady) << "the .gz is still right";
  EXPECT_TRUE(is_right(open()));
  EXPECT_EQ(extractions_, std::vector<std::string>{"train-images.gz"});
}

TEST_F(FileSetTest, NoticesAFlippedBitThoughTheModificationTimeWasSetBack) {
  put_all_gz();
  static_cast<void>(open());
  const auto time = std::filesystem::last_write_time(extracted(0));
  Bytes flipped = contents_[0];
  flipped[1000] ^= 1;
  test::write(extracted(0), flipped);
  std::filesystem::last_write_time(extracted(0), time);
  EXPECT_TRUE(is_right(open()));
  EXPECT_EQ(warnings_.size(), 1U);
}

TEST_F(FileSetTest, ARightFileWhoseChecksumMarkerIsGoneGetsANewOne) {
  put_all_gz();
  static_cast<void>(open());
  const auto checksum_marker = extracted(0).string() + ".verified";
  const Bytes before = test::read(checksum_marker);
  std::filesystem::remove(checksum_marker);
  EXPECT_TRUE(is_right(open()));
  EXPECT_EQ(test::read(checksum_marker), before);
}

// Checks the implementation, because the marker exists for speed: with a valid marker no file is
// hashed. A set that pins another checksum would be detected only by hashing.
TEST_F(FileSetTest, AChecksumMarkerThatFitsSavesTheHash) {
  put_all_gz();
  static_cast<void>(open());
  const auto checksum_marker = extracted(0).string() + ".verified";
  std::string text;
  for (const std::uint8_t byte : test::read(checksum_marker)) text += static_cast<char>(byte);
  const std::string other(64, 'a');
  text.replace(text.find(hashes_[0][0]), 64, other);
  test::write(checksum_marker, test::bytes_of(text));
  files_[0].sha256 = other;
  Bytes contents;
  EXPECT_EQ(open_verified(at(), files_[0], contents).state, FileState::kReady);
}

TEST_F(FileSetTest, AnInvalidChecksumMarkerIsNotBelieved) {
  for (const std::string& text :
       {std::string(), std::string("disttf"), std::string(100'000, 'x')}) {
    test::write(extracted(1), Bytes(files_[1].size_bytes()));
    test::write(extracted(1).string() + ".verified", test::bytes_of(text));
    Bytes contents;
    EXPECT_EQ(open_verified(at(), files_[1], contents).error, DataError::kWrongChecksum);
  }
}

// --- locations that are not writable ---

TEST_F(FileSetTest, HoldsTheDataInMemoryWhereTheDiskIsFull) {
  put_all_gz();
  EXPECT_TRUE(test::in_child([&] {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0 || ::signal(SIGXFSZ, SIG_IGN) == SIG_ERR) {
      return false;
    }
    return is_right(open()) && warnings_.size() == 1 &&
           warnings_[0].find("File too large; the data set is held in memory") != std::string::npos;
  }));
  EXPECT_EQ(directory_.names().size(), 4U) << "only the four .gz";
}

// Other users' directories are not writable, but root can write to all, so the child gives up root.
TEST_F(FileSetTest, HoldsTheDataInMemoryWhereTheDirectoryIsReadOnly) {
  put_all_gz();
  std::filesystem::permissions(at(), std::filesystem::perms{0555});
  EXPECT_TRUE(test::in_child([&] {
    constexpr uid_t kNobody = 65534;
    if (::geteuid() == 0 && ::setuid(kNobody) != 0) return false;
    return is_right(open()) && warnings_.size() == 1 &&
           warnings_[0] == "cannot create a file in " + at().string() +
                               ": Permission denied; the data set is held in memory";
  }));
  std::filesystem::permissions(at(), std::filesystem::perms{0755});
  EXPECT_EQ(directory_.names().size(), 4U) << "only the four .gz";
}

// --- several processes at once ---

TEST_F(FileSetTest, ManyProcessesExtractIntoOneDirectory) {
  put_all_gz();
  EXPECT_EQ(test::in_children(8, [&] { return is_right(open()) && warnings_.empty(); }), 8);
  EXPECT_TRUE(leftovers().empty());
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(test::read(extracted(i)), contents_[i]) << i;
}

TEST_F(FileSetTest, OnlyOneOfManyProcessesExtracts) {
  put_all_gz();
  const auto log = at() / "log";
  test::write(log, {});
  EXPECT_EQ(test::in_children(8,
                              [&] {
                                static_cast<void>(open());
                                // Appends of one byte are atomic among processes.
                                std::FILE* file = std::fopen(log.c_str(), "a");
                                for (std::size_t i = 0; i < extractions_.size(); ++i) {
                                  std::fputc('x', file);
                                }
                                return std::fclose(file) == 0;
                              }),
            8);
  EXPECT_EQ(test::read(log).size(), 4U) << "files extracted in all processes together";
}

// --- generated rather than downloaded sets ---

TEST_F(FileSetTest, WritesWhatWasMadeAndMakesItOnce) {
  int made = 0;
  const MakeContents make = [&](const SetFile& file, const FileCheck&) {
    ++made;
    return contents_[static_cast<std::size_t>(&file - files_.data())];
  };
  EXPECT_TRUE(is_right(open_file_set(at(), set_, make, {})));
  EXPECT_EQ(made, 4);
  EXPECT_TRUE(is_right(open_file_set(at(), set_, make, {})));
  EXPECT_EQ(made, 4);
}

TEST_F(FileSetTest, ThrowsOutWhatWasMadeWrong) {
  const MakeContents make = [&](const SetFile& file, const FileCheck&) {
    return Bytes(file.size_bytes());
  };
  const auto error = thrown<std::system_error>([&] { return open_file_set(at(), set_, make, {}); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), DataError::kWrongChecksum);
  EXPECT_TRUE(directory_.names().empty());
}

// Sets in which only the .gz are pinned.

class UnpinnedFileSetTest : public FileSetTest {
 protected:
  UnpinnedFileSetTest() {
    for (SetFile& file : files_) file.sha256 = {};
    set_.checksum = {};
  }
};

TEST_F(UnpinnedFileSetTest, OpensWhatItExtractsAndItAgainByItsChecksumMarker) {
  put_all_gz();
  EXPECT_TRUE(is_right(open()));
  for (std::size_t i = 0; i < 4; ++i) std::filesystem::remove(gz(i));
  EXPECT_TRUE(is_right(open()));
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(UnpinnedFileSetTest, ItsIdentityIsTheHashOfItsFourFiles) {
  put_all_gz();
  Sha256 identity;
  for (const Bytes& bytes : contents_) identity.update(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(open().checksum, identity.hex());
}

TEST_F(UnpinnedFileSetTest, RefusesAWrongGz) {
  put_all_gz();
  Bytes wrong = gz_[2];
  wrong.back() ^= 1;
  test::write(gz(2), wrong);
  EXPECT_EQ(error_of_open().code(), DataError::kWrongChecksum);
}

TEST_F(UnpinnedFileSetTest, DoesNotBelieveAFileThatAnotherUserExtracted) {
  put_all_gz();
  Bytes other = contents_[0];
  other.back() ^= 1;
  test::write(extracted(0), other);
  EXPECT_TRUE(is_right(open(true)));
  EXPECT_EQ(test::read(extracted(0)), contents_[0]);
}

TEST_F(UnpinnedFileSetTest, DoesNotBelieveAFileThatWasTouchedSince) {
  put_all_gz();
  static_cast<void>(open());
  Bytes flipped = contents_[0];
  flipped[1000] ^= 1;
  test::write(extracted(0), flipped);
  EXPECT_TRUE(is_right(open()));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_EQ(warnings_[0], extracted(0).string() +
                              ": expected it with the checksum marker of its extraction, "
                              "train-images.verified: its contents cannot be verified; it "
                              "stays where it is and is not used");
  std::filesystem::remove(gz(0));
  EXPECT_EQ(error_of_open().code(), DataError::kNotVerified);
}

}  // namespace
}  // namespace disttf::data
