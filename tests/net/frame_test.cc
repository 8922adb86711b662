#include "net/wire/frame.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>
#include <set>
#include <string>

#include "net/wire/codec.h"

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

}  // namespace
}  // namespace disttf::net
