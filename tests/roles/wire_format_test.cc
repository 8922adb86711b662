#include "roles/wire_format.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "math/bf16.h"
#include "math/model.h"
#include "math/top_k.h"
#include "net/frame.h"
#include "tests/roles/shard_pushes.h"

namespace disttf::roles {
namespace {

using math::Isa;

constexpr WireFormat kF32;
constexpr WireFormat kBf16{.bf16 = true};
constexpr WireFormat kSparse{.components = 3};
constexpr WireFormat kSparseBf16{.bf16 = true, .components = 3};

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
  EXPECT_EQ(gradient_flags(kSparse), net::kFlagSparse);
  EXPECT_EQ(gradient_flags(kSparseBf16), net::kFlagSparse | net::kFlagBf16);
}

// Two in one range, none in the next: that is what a push to the second of two ps may look like.
TEST(WireFormat, BringsBackWhatWasRoundedOrSelected) {
  for (const WireFormat& wire : {kF32, kBf16, kSparse, kSparseBf16}) {
    Values gradient = {0.1F, -2.5F, 0, 1e-3F, 7, 0.3F};
    if (wire.components != 0) {
      math::TopK(gradient.size(), wire.components, wire.bf16).select(gradient);
    } else if (wire.bf16) {
      math::round_to_bf16(gradient, gradient, Isa::kGeneric);
    }
    std::vector<std::byte> scratch;
    for (const auto range : {math::Range{.begin = 0, .end = 4}, math::Range{.begin = 4, .end = 6},
                             math::Range{.begin = 2, .end = 4}}) {
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

// A sum of two may need more bits than either.
TEST(WireFormat, OfParametersIsRoundedAnewInEachStep) {
  RunConfig config = sgd_config(2);
  config.wire_dtype = WireDtype::kBf16;
  Shard shard(config, {.begin = 0, .end = 2});
  const auto sent = [&] {
    const auto bytes = shard.as_bf16(0, shard.answer(0));
    Values values(bytes.size() / 2);
    math::from_bf16({reinterpret_cast<const std::uint16_t*>(bytes.data()), values.size()}, values,
                    Isa::kGeneric);
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

// What is still leaving for a trainer must stay as it is while others push.
TEST(WireFormat, OfParametersStaysForATrainerUntilItPushes) {
  for (const bool sync : {true, false}) {
    RunConfig config = sync ? sgd_config(2) : async_config(2);
    config.wire_dtype = WireDtype::kBf16;
    Shard shard(config, {.begin = 0, .end = 2});
    restore(shard, {1, 2}, 0);
    const auto first = shard.as_bf16(0, shard.answer(0));
    const std::vector<std::byte> as_it_was(first.begin(), first.end());
    push(shard, {.trainer = 1, .incarnation = kProcess, .step = 0, .sequence = 1}, Values{3, 4});
    static_cast<void>(shard.as_bf16(1, shard.answer(1)));
    if (sync) {
      push(shard, 0, 0, 1);
      static_cast<void>(shard.as_bf16(1, shard.answer(1)));
    }
    EXPECT_TRUE(std::ranges::equal(first, as_it_was)) << (sync ? "sync" : "async");
  }
}

}  // namespace
}  // namespace disttf::roles
