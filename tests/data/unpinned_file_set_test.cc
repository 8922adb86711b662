// Sets in which only the .gz are pinned.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/data/file_set_fixture.h"

namespace disttf::data {
namespace {

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
