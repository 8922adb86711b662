#include <gtest/gtest.h>

#include <string>
#include <system_error>

#include "data/checksums.h"
#include "tests/data/scratch.h"
#include "tests/support/thrown.h"

namespace disttf::data {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(Crc32c, OfDigitsIsWhatTheCatalogueSays) { EXPECT_EQ(crc32c("123456789"), 0xE3069283U); }

// The test vectors of RFC 3720, B.4, 32 bytes each.
TEST(Crc32c, IsThatOfThePublishedTexts) {
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43U);
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(rising), 0x46DD794EU);
}

TEST(Crc32c, OfATextInTwoPiecesIsThatOfTheWhole) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(crc32c(bytes_of(text.substr(cut)), crc32c(text.substr(0, cut))), crc32c(text)) << cut;
  }
}

// FIPS 180-2, appendix B, and the digest of empty input.
constexpr const char* kEmpty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* kMillion = "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Sha256, HashesNothing) { EXPECT_EQ(sha256_hex({}), kEmpty); }

TEST(Sha256, HashesAbc) { EXPECT_EQ(sha256_hex(bytes("abc")), kAbc); }

TEST(Sha256, HashesPiecesAsIfTheyWereOne) {
  Sha256 hash;
  hash.update(bytes("a"));
  hash.update({});
  hash.update(bytes("bc"));
  EXPECT_EQ(hash.hex(), kAbc);
}

TEST(Sha256, StartsAnewAfterADigest) {
  Sha256 hash;
  hash.update(bytes("rubbish"));
  EXPECT_NE(hash.hex(), kEmpty);
  hash.update(bytes("abc"));
  EXPECT_EQ(hash.hex(), kAbc);
}

TEST(Sha256, GoesOnAfterADigestSoFar) {
  Sha256 hash;
  hash.update(bytes("abc"));
  EXPECT_EQ(hash.hex_so_far(), kAbc);
  hash.update(bytes("def"));
  EXPECT_EQ(hash.hex(), sha256_hex(bytes("abcdef")));
}

TEST(Sha256, HashesAFileLargerThanItsBuffer) {
  const test::ScratchDirectory directory;
  const auto path = directory.path() / "million";
  test::write(path, test::Bytes(1'000'000, 'a'));
  EXPECT_EQ(sha256_file(path), kMillion);
}

TEST(Sha256, NamesTheFileThatCannotBeRead) {
  const auto error = thrown<std::system_error>([&] { return sha256_file("/nowhere/file"); });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), std::errc::no_such_file_or_directory);
  EXPECT_STREQ(error->what(), "cannot read /nowhere/file: No such file or directory");
}

}  // namespace
}  // namespace disttf::data
