#include "run/wire_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "math/model.h"
#include "math/top_k.h"
#include "net/wire/frame.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

constexpr WireFormat kF32;
constexpr WireFormat kBf16{.dtype = WireDtype::kBf16};
constexpr WireFormat kInt8{.dtype = WireDtype::kInt8};
constexpr WireFormat kInt4{.dtype = WireDtype::kInt4};
constexpr WireFormat kSparse{.components = 3};
constexpr WireFormat kSparseBf16{.dtype = WireDtype::kBf16, .components = 3};
constexpr WireFormat kSparseInt8{.dtype = WireDtype::kInt8, .components = 3};

TEST(WireFormat, CountsComponentsOfTheWholeVector) {
  RunConfig config = sgd_config(2);
  config.top_k = 0.01F;
  const std::size_t size = math::layout_of(config.model).size();
  EXPECT_EQ(wire_format_of(config).components, size / 100 + 1) << "rounded up";
  config.top_k = 1e-30F;
  EXPECT_EQ(wire_format_of(config).components, 1U);
  config.top_k = 0;
  EXPECT_EQ(wire_format_of(config).components, 0U) << "dense";
}

TEST(WireFormat, SaysInTheFlagsWhatTheBodyIs) {
  EXPECT_EQ(gradient_flags(kF32), 0);
  EXPECT_EQ(gradient_flags(kBf16), net::kFlagBf16);
  EXPECT_EQ(gradient_flags(kInt8), net::kFlagInt8);
  EXPECT_EQ(gradient_flags(kInt4), net::kFlagInt4);
  EXPECT_EQ(gradient_flags(kSparse), net::kFlagSparse);
  EXPECT_EQ(gradient_flags(kSparseInt8), net::kFlagSparse | net::kFlagInt8);
  EXPECT_EQ(gradient_flags(kSparseBf16), net::kFlagSparse | net::kFlagBf16);
}

// Two in one range and none in the next: that can be the push to the second of two ps.
TEST(WireFormat, BringsBackWhatWasRoundedOrSelected) {
  for (const WireFormat& wire : {kF32, kBf16, kInt8, kInt4, kSparse, kSparseBf16, kSparseInt8}) {
    Values gradient(64);  // four blocks
    gradient[1] = -2.5F;
    gradient[3] = 1e-3F;
    gradient[40] = 7;
    gradient[63] = 0.3F;
    if (wire.components != 0) {
      math::TopK(gradient.size(), wire.components, wire.rounds()).select(gradient);
    } else {
      round_to_wire(wire, gradient, gradient);
    }
    std::vector<std::byte> scratch;
    for (const auto range :
         {math::Range{.begin = 0, .end = 64}, math::Range{.begin = 16, .end = 32},
          math::Range{.begin = 32, .end = 64}}) {
      const auto part = std::span(gradient).subspan(range.begin, range.size());
      const auto body = pack_gradient(wire, part, scratch);
      ASSERT_TRUE(is_gradient_size(wire, part.size(), body.size()));
      Values out(part.size(), 9.0F);
      ASSERT_FALSE(unpack_gradient(wire, body, out));
      EXPECT_EQ(bits_of(out), bits_of(part));
    }
  }
}

TEST(WireFormat, KnowsHowLongABodyMayBe) {
  EXPECT_EQ(longest_gradient(kF32, 10), 40U);
  EXPECT_EQ(longest_gradient(kBf16, 10), 20U);
  EXPECT_EQ(longest_gradient(kInt8, 33), 3 + 33U);
  EXPECT_EQ(longest_gradient(kInt4, 33), 3 + 17U);
  EXPECT_EQ(longest_gradient(kSparse, 10), 24U);
  EXPECT_EQ(longest_gradient(kSparseBf16, 10), 18U);
  EXPECT_EQ(longest_gradient(kSparseBf16, 2), 12U) << "not more than the range has";
  for (std::uint64_t bytes = 0; bytes < 50; ++bytes) {
    EXPECT_EQ(is_gradient_size(kF32, 10, bytes), bytes == 40) << bytes;
    EXPECT_EQ(is_gradient_size(kBf16, 10, bytes), bytes == 20) << bytes;
    EXPECT_EQ(is_gradient_size(kSparse, 10, bytes), bytes % 8 == 0 && bytes <= 24) << bytes;
    EXPECT_EQ(is_gradient_size(kSparseBf16, 10, bytes), bytes % 6 == 0 && bytes <= 18) << bytes;
  }
}

// A sum of two values may need more bits than either.
TEST(WireFormat, OfParametersIsRoundedAnewInEachStep) {
  RunConfig config = sgd_config(2);
  config.wire_dtype = WireDtype::kBf16;
  Shard shard(config, {.begin = 0, .end = 2});
  const auto sent = [&] {
    Values values(2);
    unpack_tensor(shard.storage().wire(), shard.storage().as_sent(0, shard.answer(0).parameters),
                  values);
    return values;
  };
  restore(shard, {1, 257}, 0);
  EXPECT_EQ(sent(), (Values{1, 256})) << "257 has nine bits";
  push(shard, 0, 0, -1);
  push(shard, 1, 0, -1);
  EXPECT_EQ(sent(), (Values{2, 258})) << "made of 257 + 1, not of 256 + 1";
  EXPECT_EQ(values_of(shard.parameters()), (Values{2, 258}));
  restore(shard, {5, 6}, 1);
  EXPECT_EQ(sent(), (Values{5, 6}));
}

// Parameters in flight to a trainer must not change while others push.
TEST(WireFormat, OfParametersStaysForATrainerUntilItPushes) {
  for (const bool sync : {true, false}) {
    RunConfig config = sync ? sgd_config(2) : async_config(2);
    config.wire_dtype = WireDtype::kBf16;
    Shard shard(config, {.begin = 0, .end = 2});
    restore(shard, {1, 2}, 0);
    const auto first = shard.storage().as_sent(0, shard.answer(0).parameters);
    const std::vector<std::byte> as_it_was(first.begin(), first.end());
    push(shard, {.trainer = 1, .incarnation = kProcess, .step = 0, .sequence = 1}, Values{3, 4});
    static_cast<void>(shard.storage().as_sent(1, shard.answer(1).parameters));
    if (sync) {
      push(shard, 0, 0, 1);
      static_cast<void>(shard.storage().as_sent(1, shard.answer(1).parameters));
    }
    EXPECT_TRUE(std::ranges::equal(first, as_it_was)) << (sync ? "sync" : "async");
  }
}

}  // namespace
}  // namespace disttf::roles
