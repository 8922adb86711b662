// The bytes of the messages between a task and its program: docs/program_protocol.md.
#include "run/program/program_message.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "run/program/gradient_bits.h"
#include "tests/net/wire_bytes.h"

namespace disttf::roles {
namespace {

constexpr ProgramMessage kMessage{.kind = ProgramKind::kCompute,
                                  .number = 0x01020304,
                                  .step = 0x1112131415161718,
                                  .slot = 0x2122232425262728,
                                  .seed = 0x3132333435363738,
                                  .count = 0x4142434445464748,
                                  .value = 1.5};

std::vector<std::byte> packet_of(const ProgramMessage& message, const std::string& body) {
  const auto header = encode(message, body.size());
  std::vector<std::byte> packet(header.begin(), header.end());
  const auto bytes = std::as_bytes(std::span(body));
  packet.insert(packet.end(), bytes.begin(), bytes.end());
  return packet;
}

TEST(ProgramMessage, HasTheBytesOfTheDocument) {
  EXPECT_EQ(net::hex(encode(kMessage, 5)),
            "44545031"  // magic
            "4300"
            "0000"              // kind 67, flags
            "05000000"          // body_size
            "04030201"          // number
            "1817161514131211"  // step
            "2827262524232221"  // slot
            "3837363534333231"  // seed
            "4847464544434241"  // count
            "000000000000f83f"  // value
            "0000000000000000");
}

TEST(ProgramMessage, IsReadAsItWasWritten) {
  const std::vector<std::byte> packet = packet_of(kMessage, "hello");
  std::string why;
  const auto read = decode(packet, why);
  ASSERT_TRUE(read) << why;
  EXPECT_EQ(read->message, kMessage);
  EXPECT_EQ(read->text(), "hello");
}

TEST(ProgramMessage, OfAWrongFormIsRefused) {
  const std::vector<std::byte> good = packet_of(kMessage, "hello");
  std::string why;
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, good.size() - 1}) {
    EXPECT_FALSE(decode(std::span(good).first(size), why)) << size;
  }
  // Magic, flags, body_size, reserved.
  for (const std::size_t at : {0U, 6U, 8U, 63U}) {
    std::vector<std::byte> wrong = good;
    wrong[at] ^= std::byte{1};
    EXPECT_FALSE(decode(wrong, why)) << at;
    EXPECT_FALSE(why.empty());
  }
}

TEST(ProgramMessage, NamesItsKind) {
  EXPECT_EQ(name_of(ProgramKind::kGradient), "GRADIENT");
  EXPECT_EQ(name_of(static_cast<ProgramKind>(99)), "a message of kind 99");
}

// Which element of which variable differs, is not finite, or lies where nothing may be written.

using ::testing::Optional;

// w at 0 to 2, b at 16 to 18; 32 floats.
math::ParameterLayout two_variables() {
  math::ParameterLayout layout;
  layout.add("w", {3});
  layout.add("b", {1, 3});
  return layout;
}

TEST(GradientBits, NamesTheFirstElementThatDiffers) {
  const math::ParameterLayout layout = two_variables();
  const std::vector<float> first(layout.size(), 0.123F);
  std::vector<float> second = first;
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
  second[18] = 7;
  second[17] = 0.124F;
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 2 of 2, b, element 1: 0.123 and 0.124")));
}

TEST(GradientBits, ComparesBitsAndNotNumbers) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> first(layout.size());
  std::vector<float> second = first;
  first[2] = second[2] = std::nanf("");
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
  second[1] = -0.0F;
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 1 of 2, w, element 1: 0 and -0")));
}

TEST(GradientBits, ShowsNeighbouringFloatsAsDifferentTexts) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> first(layout.size(), 1);
  std::vector<float> second = first;
  second[0] = std::nextafter(1.0F, 2.0F);
  EXPECT_THAT(bit_difference(layout, first, second),
              Optional(std::string("variable 1 of 2, w, element 0: 1 and 1.0000001")));
}

TEST(GradientBits, DoesNotCompareThePadding) {
  const math::ParameterLayout layout = two_variables();
  const std::vector<float> first(layout.size());
  std::vector<float> second = first;
  second[3] = 1;
  EXPECT_EQ(bit_difference(layout, first, second), std::nullopt);
}

TEST(GradientBits, NamesWhatIsNotFinite) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> values(layout.size());
  values[3] = std::nanf("");  // padding
  EXPECT_EQ(not_finite(layout, values), std::nullopt);
  values[16] = -INFINITY;
  EXPECT_THAT(not_finite(layout, values),
              Optional(std::string("variable 2 of 2, b, element 0: -inf")));
}

TEST(GradientBits, NamesTheVariableBeforeWrittenPadding) {
  const math::ParameterLayout layout = two_variables();
  std::vector<float> values(layout.size());
  values[0] = values[18] = 1;
  EXPECT_EQ(written_padding(layout, values), std::nullopt);
  values[31] = 2;
  EXPECT_THAT(written_padding(layout, values),
              Optional(std::string("float 13 behind variable 2 of 2, b: 2")));
  values[3] = 0.5;
  EXPECT_THAT(written_padding(layout, values),
              Optional(std::string("float 1 behind variable 1 of 2, w: 0.5")));
}

}  // namespace
}  // namespace disttf::roles
