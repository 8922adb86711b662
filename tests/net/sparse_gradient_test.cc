#include "net/wire/sparse_gradient.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include "net/wire/frame.h"
#include "tests/net/wire_bytes.h"

namespace disttf::net {
namespace {

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
