#include "net/wire/frame.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "net/wire/codec.h"
#include "net/wire/crc32.h"
#include "net/wire/sparse_gradient.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

using Bytes = std::array<std::byte, kHeaderBytes>;

constexpr FrameHeader kExampleHeader{.kind = FrameKind::kPushPull,
                                     .flags = kFlagDropped,
                                     .request_id = 0x0102030405060708,
                                     .body_size = 318040,
                                     .step = 2000,
                                     .sequence = 0x1112131415161718,
                                     .range_begin = 1024,
                                     .generation = 0x2122232425262728};

[[nodiscard]] Bytes encoded(const FrameHeader& header) {
  Bytes bytes{};
  encode_header(header, bytes);
  return bytes;
}

// Decodes the header with one byte changed and the checksum corrected.
[[nodiscard]] std::error_code decode_with(std::size_t at, std::uint8_t value) {
  Bytes bytes = encoded(kExampleHeader);
  bytes[at] = std::byte{value};
  const auto crc =
      static_cast<std::uint32_t>(::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), 60));
  store_le(crc, std::span(bytes).subspan(60));
  FrameHeader out;
  return decode_header(bytes, out);
}

TEST(Frame, HasTheBytesOfTheDocument) {
  const std::array<std::uint8_t, kHeaderBytes> golden{
      'D',  'T',  'F',  '1',  0x07, 0x09, 0x02, 0x00,  // magic, version, kind, flags
      0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // request_id
      0x58, 0xDA, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00,  // body_size 318040
      0xD0, 0x07, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // step 2000
      0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // sequence
      0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,  // range_begin 1024
      0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,  // generation
      0x00, 0x00, 0x00, 0x00, 0xB9, 0xA3, 0x79, 0x38,  // place, header_crc
  };
  const Bytes bytes = encoded(kExampleHeader);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    EXPECT_EQ(std::to_integer<int>(bytes[i]), golden[i]) << "at offset " << i;
  }
}

TEST(Frame, SurvivesARoundTrip) {
  FrameHeader out;
  ASSERT_FALSE(decode_header(encoded(kExampleHeader), out));
  EXPECT_EQ(out, kExampleHeader);
}

TEST(Frame, KnowsEveryKind) {
  for (std::uint8_t kind = 1; kind <= 44; ++kind) {
    EXPECT_FALSE(decode_with(5, kind)) << "kind " << int{kind};
  }
}

TEST(Frame, KnowsEveryFlag) {
  for (unsigned bit = 0; bit < 8; ++bit) {
    EXPECT_FALSE(decode_with(6, static_cast<std::uint8_t>(1U << bit))) << "bit " << bit;
    EXPECT_EQ(bool{decode_with(7, static_cast<std::uint8_t>(1U << bit))}, bit >= 3) << bit;
  }
}

TEST(Frame, RejectsAFlippedBitAnywhereInTheHeader) {
  for (std::size_t bit = 0; bit < 8 * kHeaderBytes; ++bit) {
    Bytes bytes = encoded(kExampleHeader);
    bytes[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    FrameHeader out;
    EXPECT_TRUE(decode_header(bytes, out)) << "bit " << bit;
    EXPECT_EQ(out, FrameHeader{}) << "bit " << bit << " changed the output";
  }
}

TEST(Frame, NamesWhatIsWrong) {
  EXPECT_EQ(decode_with(0, 'd'), WireError::kBadMagic);
  EXPECT_EQ(decode_with(4, 1), WireError::kBadVersion);
  EXPECT_EQ(decode_with(5, 0), WireError::kBadKind);
  EXPECT_EQ(decode_with(5, 45), WireError::kBadKind);
  EXPECT_EQ(decode_with(7, 8), WireError::kBadFlags);
  EXPECT_EQ(decode_with(56, 1), WireError::kBadReserved);
  EXPECT_EQ(decode_with(59, 1), WireError::kBadReserved);
  Bytes bytes = encoded(kExampleHeader);
  bytes[63] ^= std::byte{1};
  FrameHeader out;
  EXPECT_EQ(decode_header(bytes, out), WireError::kBadChecksum);
}

TEST(Frame, PlaceIsThatOfABodyThatDoesNotFollow) {
  FrameHeader header = kExampleHeader;
  header.flags = kFlagInPlace;
  header.body_offset = 0x31323334 * std::uint64_t{kBodyOffsetUnit};
  const Bytes bytes = encoded(header);
  EXPECT_EQ(bytes[56], std::byte{0x34});
  EXPECT_EQ(bytes[59], std::byte{0x31});
  FrameHeader out;
  ASSERT_FALSE(decode_header(bytes, out));
  EXPECT_EQ(out, header);
  EXPECT_EQ(out.bytes_behind(), 0U);
  EXPECT_EQ(kExampleHeader.bytes_behind(), kExampleHeader.body_size);
}

TEST(Frame, KnowsFromTheFirstByteThatNoFrameComes) {
  const Bytes bytes = encoded(kExampleHeader);
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    EXPECT_TRUE(may_be_frame(std::span(bytes).first(size)));
  }
  EXPECT_FALSE(may_be_frame(std::array{std::byte{'G'}}));
  EXPECT_FALSE(may_be_frame(std::array{std::byte{'D'}, std::byte{'T'}, std::byte{'G'}}));
}

TEST(WireError, EveryCodeHasAMessageOfItsOwn) {
  std::set<std::string> messages;
  const int last = static_cast<int>(WireError::kRefused);
  for (int code = 1; code <= last; ++code) {
    const std::string message = make_error_code(static_cast<WireError>(code)).message();
    EXPECT_EQ(message.find("unknown wire error"), std::string::npos) << code;
    messages.insert(message);
  }
  EXPECT_EQ(messages.size(), static_cast<std::size_t>(last));
  EXPECT_EQ(make_error_code(static_cast<WireError>(last + 1)).message(),
            "unknown wire error " + std::to_string(last + 1));
}

TEST(ByteWriter, WritesLittleEndian) {
  ByteWriter writer(7);
  writer.put(std::uint32_t{0x01020304});
  writer.put(std::uint16_t{0x0506});
  writer.put(std::uint8_t{0xFF});
  const std::vector<std::byte> expected{std::byte{4}, std::byte{3}, std::byte{2},   std::byte{1},
                                        std::byte{6}, std::byte{5}, std::byte{0xFF}};
  EXPECT_EQ(std::move(writer).take(), expected);
}

TEST(ByteReader, ReadsBackWhatWasWritten) {
  ByteWriter writer(8);
  writer.put(std::uint64_t{0xFEDCBA9876543210});
  const std::vector<std::byte> bytes = std::move(writer).take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint64_t>(), 0xFEDCBA9876543210U);
  EXPECT_TRUE(reader.complete());
}

TEST(ByteReader, TurnsBadPastTheEndAndStaysSo) {
  const std::vector<std::byte> bytes(3, std::byte{1});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.get<std::uint32_t>(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.get<std::uint8_t>(), 0U);
  EXPECT_FALSE(reader.complete());
}

TEST(ByteReader, IsNotCompleteWhileBytesAreLeft) {
  const std::vector<std::byte> bytes(2);
  ByteReader reader(bytes);
  static_cast<void>(reader.get<std::uint8_t>());
  EXPECT_TRUE(reader.ok());
  EXPECT_FALSE(reader.complete());
}

TEST(Crc32, OfTheStandardsCheckIsTheStandards) {
  std::vector<std::byte> bytes;
  for (const char digit : {'1', '2', '3', '4', '5', '6', '7', '8', '9'}) {
    bytes.push_back(static_cast<std::byte>(digit));
  }
  EXPECT_EQ(crc32(bytes), 0xCBF43926U);
}

// Covers each remainder modulo the eight bytes of a step.
TEST(Crc32, IsZlibsForAllLengths) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes;
  for (std::size_t length = 0; length <= 300; ++length) {
    const auto* data = reinterpret_cast<const Bytef*>(bytes.data());
    EXPECT_EQ(crc32(bytes), ::crc32(::crc32(0, nullptr, 0), data, static_cast<uInt>(length)))
        << length;
    bytes.push_back(static_cast<std::byte>(random()));
  }
}

constexpr std::uint64_t kChief = 0x0123456789ABCDEF;
constexpr std::uint64_t kNewerChief = kChief + (1U << 20U);  // a millisecond later

TEST(Generation, BeginsWithItsChiefAndCountsFromOne) {
  const Generation first = generation_after(0, kChief);
  EXPECT_EQ(first, 0x0123456789ABC001U);
  EXPECT_EQ(number_of(first), 1U);
  EXPECT_EQ(number_of(generation_after(first, kChief)), 2U);
}

TEST(Generation, IsAboveTheNewestThatWasKnown) {
  const Generation older = generation_after(generation_after(0, kChief), kChief);
  const Generation newer = generation_after(older, kNewerChief);
  EXPECT_GT(newer, older);
  EXPECT_EQ(number_of(newer), 3U);
  // The clock of the newer chief was behind.
  EXPECT_GT(generation_after(newer, kChief), newer);
}

TEST(Generation, OfTwoChiefsThatDoNotKnowOfEachOtherIsNeverOne) {
  const Generation known = generation_after(0, kChief);
  Generation older = known;
  const Generation newer = generation_after(known, kNewerChief);
  for (int times = 0; times < 1000; ++times) {
    older = generation_after(older, kChief);
    EXPECT_LT(older, newer);
  }
}

TEST(Generation, RisesWhenItsNumberBeginsAgain) {
  const Generation last = generation_after(0, kChief) + 4094;
  EXPECT_EQ(number_of(last), 4095U);
  const Generation next = generation_after(last, kChief);
  EXPECT_GT(next, last);
  EXPECT_EQ(number_of(next), 0U);
}

using Values = std::vector<float>;

std::vector<std::byte> encoded(const Values& values, bool bf16) {
  std::vector<std::byte> body(3, std::byte{0xEE});  // earlier contents do not matter
  encode_sparse(values, bf16, body);
  return body;
}

std::vector<std::uint32_t> bits_of(const Values& values) {
  std::vector<std::uint32_t> bits;
  for (const float value : values) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

// -1 at 1 and 2 at 3, as in docs/wire_format.md.
const Values kExample = {0, -1, 0, 2};

TEST(SparseGradient, HasTheBytesOfTheDocument) {
  EXPECT_EQ(hex(encoded(kExample, false)),
            "01000000"
            "03000000"
            "000080bf"
            "00000040");
  EXPECT_EQ(hex(encoded(kExample, true)),
            "01000000"
            "03000000"
            "80bf"
            "0040");
}

TEST(SparseGradient, SurvivesARoundTrip) {
  const Values values = {0,
                         0.5F,
                         -0.0F,
                         0,
                         std::numeric_limits<float>::infinity(),
                         std::numeric_limits<float>::quiet_NaN(),
                         0};
  for (const bool bf16 : {false, true}) {
    Values out(values.size(), 7.0F);
    ASSERT_FALSE(decode_sparse(encoded(values, bf16), bf16, out));
    EXPECT_EQ(bits_of(out), bits_of(values));
  }
}

TEST(SparseGradient, OfZerosIsEmpty) {
  EXPECT_TRUE(encoded(Values(5), false).empty());
  Values out(5, 7.0F);
  ASSERT_FALSE(decode_sparse({}, false, out));
  EXPECT_EQ(out, Values(5));
}

// Expects a refusal that writes nothing.
void expect_refused(const std::vector<std::byte>& body, bool bf16, std::size_t size) {
  Values out(size, 7.0F);
  EXPECT_EQ(decode_sparse(body, bf16, out), WireError::kBadBody);
  EXPECT_EQ(out, Values(size, 7.0F));
}

TEST(SparseGradient, RefusesEveryOtherLength) {
  for (const bool bf16 : {false, true}) {
    std::vector<std::byte> body = encoded(kExample, bf16);
    for (std::size_t size = 1; size < body.size(); ++size) {
      if (size % sparse_bytes(1, bf16) != 0) {
        expect_refused({body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size)}, bf16, 4);
      }
    }
    body.push_back(std::byte{0});
    expect_refused(body, bf16, 4);
  }
}

TEST(SparseGradient, RefusesAnIndexBeyondTheRange) {
  expect_refused(encoded(kExample, false), false, 3);
  std::vector<std::byte> body = encoded(kExample, false);
  body[7] = std::byte{0xFF};  // the highest byte of the second index
  expect_refused(body, false, 4);
}

TEST(SparseGradient, RefusesIndicesThatDoNotAscend) {
  std::vector<std::byte> twice = encoded(kExample, false);
  twice[4] = std::byte{1};
  expect_refused(twice, false, 4);
  std::vector<std::byte> back = encoded(kExample, false);
  back[4] = std::byte{0};
  expect_refused(back, false, 4);
}

TEST(SparseGradient, RefusesAComponentThatIsZero) {
  std::vector<std::byte> body = encoded(kExample, true);
  body[8] = body[9] = std::byte{0};
  expect_refused(body, true, 4);
}

TEST(SparseGradient, RefusesMoreComponentsThanTheRangeHas) {
  expect_refused(encoded({1, 2, 3}, true), true, 2);
}

}  // namespace
}  // namespace disttf::net
