#include "math/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

namespace disttf::math {
namespace {

TEST(ThreadPool, ComputesEachPartOnce) {
  for (const std::size_t members : {1U, 2U, 5U}) {
    ThreadPool pool(members);
    ASSERT_EQ(pool.size(), members);
    for (const std::size_t parts : {0U, 1U, 2U, 3U, 100U}) {
      std::vector<std::atomic<int>> times(parts);
      std::atomic<bool> is_member{true};
      pool.run(parts, [&](std::size_t number, std::size_t member) {
        ++times[number];
        is_member = is_member && member < members;
      });
      EXPECT_TRUE(is_member);
      EXPECT_TRUE(std::ranges::all_of(times, [](const auto& each) { return each == 1; }))
          << members << " members, " << parts << " parts";
    }
  }
}

// Each part waits for the other one, so a pool whose members do not run at once never finishes.
TEST(ThreadPool, WorksAtOnce) {
  ThreadPool pool(2);
  std::atomic<int> begun{0};
  pool.run(2, [&](std::size_t, std::size_t) {
    ++begun;
    begun.notify_all();
    for (int seen = begun; seen < 2; seen = begun) {
      begun.wait(seen);
    }
  });
  EXPECT_EQ(begun, 2);
}

class ThreadPoolThat : public testing::TestWithParam<std::chrono::microseconds> {};
INSTANTIATE_TEST_SUITE_P(, ThreadPoolThat, testing::Values(ThreadPool::kLook, ThreadPool::kSleep),
                         [](const auto& look) { return look.index == 0 ? "Looks" : "Sleeps"; });

// The results of one round are visible in the next, in every thread.
TEST_P(ThreadPoolThat, SeesTheRoundBefore) {
  constexpr std::size_t kParts = 7;
  ThreadPool pool(3, GetParam());
  std::vector<std::size_t> before(kParts, 0);
  std::vector<std::size_t> values(kParts, 0);
  std::size_t wrong = 0;
  for (std::size_t round = 1; round <= 20'000; ++round) {
    pool.run(kParts, [&](std::size_t number, std::size_t) {
      values[number] = before[(number + 1) % kParts] + 1;
    });
    wrong += std::ranges::count(values, round) == kParts ? 0U : 1U;
    std::swap(before, values);
  }
  EXPECT_EQ(wrong, 0U);
}

TEST(ThreadPool, NoMemberComputesTwoPartsAtOnce) {
  ThreadPool pool(4);
  std::vector<std::atomic<int>> at_work(4);
  std::atomic<bool> twice{false};
  for (int round = 0; round < 500; ++round) {
    pool.run(16, [&](std::size_t, std::size_t member) {
      twice = twice || ++at_work[member] > 1;
      --at_work[member];
    });
  }
  EXPECT_FALSE(twice);
}

TEST(EvenParts, CoversAllInWholeUnits) {
  for (const std::size_t size : {1U, 3U, 4U, 5U, 100U, 784U}) {
    for (const std::size_t members : {1U, 2U, 3U, 16U}) {
      const EvenParts parts(size, 4, members);
      ASSERT_LE(parts.count(), members);
      EXPECT_EQ(parts.begin(0), 0U);
      EXPECT_EQ(parts.end(parts.count() - 1), size);
      for (std::size_t each = 0; each < parts.count(); ++each) {
        EXPECT_LT(parts.begin(each), parts.end(each)) << "of " << size << " for " << members;
        EXPECT_EQ(parts.begin(each) % 4, 0U);
      }
    }
  }
}

TEST(EvenParts, DifferByOneUnitAtMost) {
  const EvenParts parts(100, 4, 3);
  std::set<std::size_t> sizes;
  for (std::size_t each = 0; each < parts.count(); ++each) {
    sizes.insert(parts.end(each) - parts.begin(each));
  }
  EXPECT_EQ(sizes, (std::set<std::size_t>{32, 36}));
}

TEST(EvenParts, OfNothingAreOneThatIsEmpty) {
  const EvenParts parts(0, 4, 3);
  EXPECT_EQ(parts.count(), 1U);
  EXPECT_EQ(parts.end(0), 0U);
}

}  // namespace
}  // namespace disttf::math
