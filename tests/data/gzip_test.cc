#include "data/gzip.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/error.h"
#include "tests/data/scratch.h"

namespace disttf::data {
namespace {

using test::Bytes;

constexpr std::size_t kPlenty = 1U << 20U;

Bytes sample() {
  Bytes bytes;
  for (std::uint32_t i = 0; i < 5000; ++i) bytes.push_back(static_cast<std::uint8_t>(i * i >> 3U));
  return bytes;
}

std::error_code error_of(const Bytes& compressed, std::size_t max_bytes = kPlenty) {
  Bytes out{1, 2, 3};
  const std::error_code error = gunzip(compressed, max_bytes, out);
  EXPECT_TRUE(!error || out.empty()) << "something was left in the output";
  return error;
}

TEST(Gunzip, GivesBackWhatWasCompressed) {
  Bytes out;
  ASSERT_FALSE(gunzip(test::gzip(sample()), kPlenty, out));
  EXPECT_EQ(out, sample());
}

TEST(Gunzip, ReadsAMemberWithAFileName) {
  Bytes named = test::gzip(sample());
  named[3] = 8;  // flag FNAME
  const Bytes name = test::bytes_of(std::string("a\0", 2));
  named.insert(named.begin() + 10, name.begin(), name.end());
  Bytes out;
  ASSERT_FALSE(gunzip(named, kPlenty, out));
  EXPECT_EQ(out, sample());
}

TEST(Gunzip, ReadsAnEmptyMember) {
  Bytes out;
  ASSERT_FALSE(gunzip(test::gzip({}), 0, out));
  EXPECT_TRUE(out.empty());
}

TEST(Gunzip, ReadsMoreThanItsFirstBufferHolds) {
  const Bytes large(300'000, 7);
  Bytes out;
  ASSERT_FALSE(gunzip(test::gzip(large), kPlenty, out));
  EXPECT_EQ(out, large);
}

TEST(Gunzip, RefusesWhatIsNotGzip) {
  EXPECT_EQ(error_of(test::bytes_of("<html><body>404</body></html>")), DataError::kNotGzip);
}

TEST(Gunzip, RefusesAMethodOtherThanDeflate) {
  Bytes compressed = test::gzip(sample());
  compressed[2] = 7;
  EXPECT_EQ(error_of(compressed), DataError::kNotGzip);
}

TEST(Gunzip, RefusesReservedFlags) {
  Bytes compressed = test::gzip(sample());
  compressed[3] |= 0x80;
  EXPECT_EQ(error_of(compressed), DataError::kGzipCorrupt);
}

TEST(Gunzip, CallsEveryPrefixTruncated) {
  const Bytes compressed = test::gzip(sample());
  for (std::size_t size = 0; size < compressed.size(); ++size) {
    const Bytes prefix(compressed.begin(), compressed.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(error_of(prefix), DataError::kGzipTruncated) << "cut at " << size;
  }
}

TEST(Gunzip, RefusesAWrongCrc) {
  Bytes compressed = test::gzip(sample());
  compressed[compressed.size() - 8] ^= 1;
  EXPECT_EQ(error_of(compressed), DataError::kGzipCorrupt);
}

TEST(Gunzip, RefusesAWrongSize) {
  Bytes compressed = test::gzip(sample());
  compressed[compressed.size() - 4] ^= 1;
  EXPECT_EQ(error_of(compressed), DataError::kGzipCorrupt);
}

TEST(Gunzip, NeverReturnsOtherBytesWhenABitIsFlipped) {
  const Bytes compressed = test::gzip(sample());
  for (std::size_t bit = 0; bit < compressed.size() * 8; ++bit) {
    Bytes flipped = compressed;
    flipped[bit / 8] ^= static_cast<std::uint8_t>(1U << (bit % 8));
    Bytes out;
    // Changed bits in the header's time or operating system do not affect the output.
    const bool accepted = !gunzip(flipped, kPlenty, out);
    EXPECT_TRUE(!accepted || out == sample()) << "bit " << bit;
  }
}

TEST(Gunzip, RefusesAByteAfterTheMember) {
  Bytes compressed = test::gzip(sample());
  compressed.push_back(0);
  EXPECT_EQ(error_of(compressed), DataError::kGzipTrailingBytes);
}

TEST(Gunzip, RefusesASecondMember) {
  Bytes compressed = test::gzip(sample());
  const Bytes second = compressed;
  compressed.insert(compressed.end(), second.begin(), second.end());
  EXPECT_EQ(error_of(compressed), DataError::kGzipTrailingBytes);
}

TEST(Gunzip, FillsTheAllowedSizeExactly) {
  Bytes out;
  ASSERT_FALSE(gunzip(test::gzip(sample()), sample().size(), out));
  EXPECT_EQ(out, sample());
}

TEST(Gunzip, RefusesOneByteMoreThanAllowed) {
  EXPECT_EQ(error_of(test::gzip(sample()), sample().size() - 1), DataError::kGzipTooLarge);
}

TEST(Gunzip, StopsABombAtTheLimit) {
  const Bytes bomb = test::gzip(Bytes(64U << 20U));  // 64 MiB of zeros in 64 KiB
  ASSERT_LT(bomb.size(), 100'000U);
  Bytes out;
  EXPECT_EQ(gunzip(bomb, 1000, out), DataError::kGzipTooLarge);
  EXPECT_LE(out.capacity(), 1001U) << "took more memory than allowed";
}

// --- in pieces ---

// The result of decompression in pieces.
struct Pieces {
  std::error_code error;
  Bytes out;
};

// Decompresses in pieces of `piece_bytes`.
Pieces in_pieces(const Bytes& compressed, std::size_t piece_bytes) {
  Pieces result;
  std::span<const std::uint8_t> left = compressed;
  result.error = gunzip_pieces(
      [&] {
        const auto piece = left.first(std::min(piece_bytes, left.size()));
        left = left.subspan(piece.size());
        return piece;
      },
      [&](std::span<const std::uint8_t> piece) {
        EXPECT_FALSE(piece.empty());
        EXPECT_LE(piece.size(), 256U << 10U);
        result.out.insert(result.out.end(), piece.begin(), piece.end());
        return std::error_code{};
      });
  return result;
}

TEST(GunzipPieces, GiveBackWhatWasCompressed) {
  // Covers much output from little input, and little output from much input.
  for (const Bytes& bytes : {sample(), Bytes(1'000'000, 7), Bytes(256U << 10U, 7), Bytes{}}) {
    for (const std::size_t size : {1U, 100U, 1U << 20U}) {
      const Pieces pieces = in_pieces(test::gzip(bytes), size);
      EXPECT_FALSE(pieces.error) << pieces.error.message();
      EXPECT_EQ(pieces.out, bytes) << size;
    }
  }
}

TEST(GunzipPieces, RefuseWhatGunzipRefuses) {
  const Bytes good = test::gzip(sample());
  EXPECT_EQ(in_pieces({}, 10).error, DataError::kNotGzip);
  EXPECT_EQ(in_pieces(test::bytes_of("<html>"), 10).error, DataError::kNotGzip);
  EXPECT_EQ(in_pieces(Bytes(good.begin(), good.end() - 1), 10).error, DataError::kGzipTruncated);
  Bytes wrong = good;
  wrong[wrong.size() - 5] ^= 1;  // of the CRC-32
  EXPECT_EQ(in_pieces(wrong, 10).error, DataError::kGzipCorrupt);
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_EQ(in_pieces(longer, 10).error, DataError::kGzipTrailingBytes);
  EXPECT_EQ(in_pieces(longer, good.size()).error, DataError::kGzipTrailingBytes);
}

TEST(GunzipPieces, EndWithTheErrorOfWhoTakesThem) {
  bool is_first = true;
  const Bytes compressed = test::gzip(sample());
  const std::error_code error = gunzip_pieces(
      [&] {
        return std::exchange(is_first, false) ? std::span(compressed)
                                              : std::span<const std::uint8_t>{};
      },
      [](std::span<const std::uint8_t>) { return make_error_code(DataError::kTarBadHeader); });
  EXPECT_EQ(error, DataError::kTarBadHeader);
}

TEST(Gzip, WhatIsPackedIsUnpacked) {
  std::string text;
  for (unsigned i = 0; i < 100'000; ++i) {
    text += static_cast<char>(i * i / 7 % 251U);
  }
  for (const std::string& each : {std::string(), std::string("a"), text}) {
    const std::string packed = gzip(each);
    std::vector<std::uint8_t> out;
    const std::vector<std::uint8_t> bytes(packed.begin(), packed.end());
    ASSERT_FALSE(gunzip(bytes, each.size(), out));
    EXPECT_EQ(std::string(out.begin(), out.end()), each);
  }
}

}  // namespace
}  // namespace disttf::data
