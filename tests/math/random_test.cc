#include "math/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "math/kernels_table.h"

namespace disttf::math {
namespace {

using Block = std::array<std::uint32_t, 4>;

// The three vectors below are from Random123 1.14, tests/kat_vectors, "philox4x32 10".
TEST(Philox, GivesThePublishedBlockForZeros) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
}

TEST(Philox, GivesThePublishedBlockForOnes) {
  constexpr std::uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
}

TEST(Philox, GivesThePublishedBlockForTheDigitsOfPi) {
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomBits, AreTheFirstTwoWordsOfTheDocumentedBlock) {
  const std::uint64_t seed = 0x0123456789abcdef;
  const std::uint64_t stream = 0x0000fedcba987654;
  const std::uint64_t index = 0x1122334455667788;
  const Block block =
      philox({0x55667788, 0x11223344, 0xba987654, 0x0002fedc}, {0x89abcdef, 0x01234567});
  EXPECT_EQ(random_bits(seed, 2, stream, index), (std::uint64_t{block[1]} << 32U) | block[0]);
}

// Every bit of every input must matter: an input word that is dropped, or that shares its position
// in the counter with another, causes an equal draw here.
TEST(RandomBits, DifferWhereverOneBitOfOneInputDiffers) {
  std::set<std::uint64_t> seen = {random_bits(0, 0, 0, 0)};
  std::size_t draws = 1;
  for (unsigned bit = 0; bit < 64; ++bit) {
    seen.insert(random_bits(std::uint64_t{1} << bit, 0, 0, 0));
    seen.insert(random_bits(0, 0, 0, std::uint64_t{1} << bit));
    draws += 2;
  }
  for (std::uint32_t purpose = 1; purpose < kPurposeLimit; purpose *= 2) {
    seen.insert(random_bits(0, purpose, 0, 0));
    ++draws;
  }
  for (std::uint64_t stream = 1; stream < kStreamLimit; stream *= 2) {
    seen.insert(random_bits(0, 0, stream, 0));
    ++draws;
  }
  EXPECT_EQ(seen.size(), draws);
}

TEST(RandomBits, OfNeighbouringPurposesDoNotShareStreams) {
  std::set<std::uint64_t> seen;
  for (std::uint32_t purpose = 1; purpose <= 5; ++purpose) {
    for (std::uint64_t stream = 0; stream < 50; ++stream) {
      for (std::uint64_t index = 0; index < 50; ++index) {
        seen.insert(random_bits(42, purpose, stream, index));
      }
    }
  }
  EXPECT_EQ(seen.size(), 5U * 50U * 50U);
}

// Many at a time, on each instruction set: fewer and more than a batch of the generator, and at the
// carry of the index into its second word.
TEST(RandomBits, AreTheSameManyAtATime) {
  constexpr std::uint64_t kSeed = 0x0123456789abcdef;
  constexpr std::uint64_t kStream = 0x0000fedcba987654;
  for (const Isa isa : supported_isas()) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{0xffffffc1}}) {
      for (const std::size_t count : {0U, 1U, 63U, 64U, 65U, 200U}) {
        std::vector<std::uint64_t> bits(count + 1, 42);
        kernels(isa).random_bits(kSeed, kStream | (std::uint64_t{3} << 48U), first, bits.data(),
                                 count);
        for (std::size_t i = 0; i < count; ++i) {
          ASSERT_EQ(bits[i], random_bits(kSeed, 3, kStream, first + i))
              << isa_name(isa) << ", " << i;
        }
        EXPECT_EQ(bits[count], 42U);
      }
    }
  }
}

TEST(RandomBits, OfManyTakePurposeAndStreamApart) {
  std::array<std::uint64_t, 3> bits{};
  random_bits(7, 9, kStreamLimit - 1, 5, bits);
  EXPECT_EQ(bits[2], random_bits(7, 9, kStreamLimit - 1, 7));
}

}  // namespace
}  // namespace disttf::math
