// Non-temporal stores write the same numbers as normal stores, for any beginning and end.
#include "math/non_temporal_stores.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "math/aligned.h"
#include "math/large_copies.h"
#include "math/optimizer.h"
#include "tests/math/isa_test.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

// Whole cache lines, and the parts before and after them.
TEST(NonTemporalStores, CopiesWhatItIsToldAndNothingElse) {
  constexpr std::size_t kRoom = 128;
  constexpr float kUntouched = -7.0F;
  const AlignedVector from = made_up_numbers(kRoom, 1);
  for (const std::size_t skipped : {0UL, 3UL}) {
    for (std::size_t begin = 0; begin <= 17; ++begin) {
      for (const std::size_t count : {0UL, 1UL, 15UL, 16UL, 31UL, 48UL, 77UL}) {
        AlignedVector to(kRoom);
        std::ranges::fill(to.span(), kUntouched);
        store_non_temporal(from.data() + skipped, to.data() + begin, count);
        fence_non_temporal_stores();
        for (std::size_t i = 0; i < kRoom; ++i) {
          const bool is_copied = i >= begin && i < begin + count;
          ASSERT_EQ(to.data()[i], is_copied ? from.data()[skipped + i - begin] : kUntouched)
              << i << " of " << count << " from " << begin;
        }
      }
    }
  }
}

class StreamedUpdates : public IsaTest {
 protected:
  static constexpr std::size_t kSize = 3 * 2048 + 1000;

  // Returns the parameters and the state after three steps between two buffers. Some weights decay,
  // others are running statistics.
  static std::vector<std::uint32_t> after_steps(const OptimizerSpec& spec, bool streams,
                                                std::size_t size, std::size_t threads) {
    Optimizer optimizer(spec, size, isa(), threads, std::vector<Range>{{0, 301}, {900, 3000}},
                        {{.range = {301, 350}, .momentum = 0.9F}});
    optimizer.stream_updates(streams);
    AlignedVector buffers[2] = {made_up_numbers(size, 1), AlignedVector(size)};
    if (optimizer.averages()) {
      optimizer.begin_average(buffers[0].span());
    }
    for (std::uint64_t step = 1; step <= 3; ++step) {
      const AlignedVector sum = made_up_numbers(size, 10 + step);
      const AlignedVector last = made_up_numbers(size, 20 + step);
      optimizer.apply(buffers[(step - 1) % 2].span(), buffers[step % 2].span(), sum.span(), 0.5F,
                      step, 1.0F, last.span());
    }
    std::vector<std::uint32_t> bits = bits_of(buffers[1].span());
    for (const StateTensor& tensor : optimizer.state()) {
      const std::vector<std::uint32_t> more = bits_of(tensor.values);
      bits.insert(bits.end(), more.begin(), more.end());
    }
    return bits;
  }
};
INSTANTIATE_TEST_SUITE_P(Isas, StreamedUpdates, testing::ValuesIn(kEveryIsa), isa_test_name);

TEST_P(StreamedUpdates, AreBitIdentical) {
  for (const std::string_view name : optimizer_names()) {
    for (const float average_decay : {0.0F, 0.99F}) {
      const OptimizerSpec spec{.kind = optimizer_from_name(name).value(),
                               .learning_rate = 0.01F,
                               .weight_decay = 0.1F,
                               .average_decay = average_decay};
      EXPECT_EQ(after_steps(spec, true, kSize, 1), after_steps(spec, false, kSize, 1)) << name;
    }
  }
}

// Several threads store parts at once.
TEST_P(StreamedUpdates, AreBitIdenticalWithThreads) {
  constexpr std::size_t kLarge = 10 * 16 * 1024 + 77;
  const OptimizerSpec spec{.kind = OptimizerKind::kAdam, .learning_rate = 0.01F};
  EXPECT_EQ(after_steps(spec, true, kLarge, 3), after_steps(spec, false, kLarge, 1));
}

// In-place updates use normal stores.
TEST_P(StreamedUpdates, MayBeInPlace) {
  AlignedVector streamed = made_up_numbers(kSize, 1);
  AlignedVector stored = made_up_numbers(kSize, 1);
  for (AlignedVector* const parameters : {&streamed, &stored}) {
    Optimizer optimizer({.kind = OptimizerKind::kSgd, .learning_rate = 0.1F}, kSize, isa());
    optimizer.stream_updates(parameters == &streamed);
    optimizer.apply(parameters->span(), made_up_numbers(kSize, 2).span(), 1.0F, 1);
  }
  EXPECT_EQ(bits_of(streamed.span()), bits_of(stored.span()));
}

TEST(NonTemporalStores, AddsWhatItIsToldAndNothingElse) {
  constexpr std::size_t kRoom = 128;
  constexpr float kUntouched = -7.0F;
  const AlignedVector a = made_up_numbers(kRoom, 1);
  const AlignedVector b = made_up_numbers(kRoom, 2);
  for (std::size_t begin = 0; begin <= 17; ++begin) {
    for (const std::size_t count : {0UL, 1UL, 15UL, 16UL, 31UL, 48UL, 77UL}) {
      AlignedVector to(kRoom);
      std::ranges::fill(to.span(), kUntouched);
      store_sum_non_temporal(a.data() + 3, b.data() + 5, to.data() + begin, count);
      fence_non_temporal_stores();
      for (std::size_t i = 0; i < kRoom; ++i) {
        const bool is_sum = i >= begin && i < begin + count;
        const std::size_t k = i - begin;
        ASSERT_EQ(to.data()[i], is_sum ? a.data()[3 + k] + b.data()[5 + k] : kUntouched)
            << i << " of " << count << " from " << begin;
      }
    }
  }
}

constexpr std::size_t kPage = 4096;

// Covers every alignment within a page, and overlap of source and target.
TEST(LargeCopies, AreRightWhereverTheyBegin) {
  const LargeCopies chosen = choose_large_copies();
  EXPECT_EQ(large_copies(), chosen);
  EXPECT_TRUE(chosen == LargeCopies::kAsLibcDoes || prefers_vectors());
  for (const std::size_t bytes : {2 * kPage, 80 * kPage + 17}) {
    std::vector<unsigned char> from(bytes + kPage);
    for (std::size_t each = 0; each < from.size(); ++each) {
      from[each] = static_cast<unsigned char>(each * 31 + each / 256);
    }
    for (const std::size_t behind : {0UL, 1UL, 16UL, 31UL, 32UL, 4080UL}) {
      std::vector<unsigned char> to(bytes + kPage);
      std::memcpy(to.data() + behind, from.data(), bytes);
      EXPECT_EQ(std::memcmp(to.data() + behind, from.data(), bytes), 0);
      std::vector<unsigned char> within = from;
      std::memmove(within.data() + behind, within.data(), bytes);
      EXPECT_EQ(std::memcmp(within.data() + behind, from.data(), bytes), 0);
    }
  }
}

}  // namespace
}  // namespace disttf::math
