// The sum of a step's gradients: the same tree for any order of arrival, for any missing gradients
// and for any buffers.
#include "math/tree_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "math/kernels.h"
#include "tests/math/isa_test.h"

namespace disttf::math {
namespace {

using Values = std::vector<float>;
using Places = std::vector<std::size_t>;

constexpr std::size_t kFloats = 19;

// Numbers of widely different sizes, so that another order of addition changes the last bits.
std::vector<Values> random_gradients(std::size_t count) {
  std::mt19937 random(20261127);
  std::uniform_real_distribution<float> mantissa(-1.0F, 1.0F);
  std::uniform_int_distribution<int> exponent(-12, 4);
  std::vector<Values> gradients(count, Values(kFloats));
  for (Values& gradient : gradients) {
    std::generate(gradient.begin(), gradient.end(),
                  [&] { return std::ldexp(mantissa(random), exponent(random)); });
  }
  return gradients;
}

Values added(const Values& a, const Values& b) {
  Values sum(a.size());
  std::transform(a.begin(), a.end(), b.begin(), sum.begin(), std::plus<>());
  return sum;
}

// By the header's definition: a subtree of `size` positions, a power of two, is the sum of its
// halves.
Values reference(const std::vector<Values>& gradients, const Places& there, std::size_t first,
                 std::size_t size) {
  const auto from = std::lower_bound(there.begin(), there.end(), first);
  if (from == there.end() || *from >= first + size) {
    return {};
  }
  if (size == 1) {
    return gradients[first];
  }
  const Values left = reference(gradients, there, first, size / 2);
  const Values right = reference(gradients, there, first + size / 2, size / 2);
  if (left.empty() || right.empty()) {
    return left.empty() ? right : left;
  }
  return added(left, right);
}

// Returns the sum of gradients that arrive in this order. `is_own(place)`: the sum may write to
// that gradient.
template <typename IsOwn>
Values sum_of(TreeSum& sum, std::vector<Values> gradients, const Places& order, IsOwn is_own,
              bool as_halves) {
  for (const std::size_t place : order) {
    sum.add(place, gradients[place],
            is_own(place) ? std::span<float>(gradients[place]) : std::span<float>());
  }
  Values found;
  if (as_halves) {
    const TreeSum::Halves halves = sum.halves();
    found.assign(halves.sum.begin(), halves.sum.end());
    found =
        halves.last.empty() ? found : added(found, Values(halves.last.begin(), halves.last.end()));
  } else {
    const std::span<const float> whole = sum.whole();
    found.assign(whole.begin(), whole.end());
  }
  sum.clear();
  return found;
}

class TreeSumTest : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static std::size_t places() { return GetParam(); }

  const std::vector<Values> gradients_ = random_gradients(places());
  TreeSum sum_{places(), kFloats, Isa::kGeneric};
  std::mt19937 random_{1};

  void expect_all_the_same(const Places& there) {
    const Values expected = reference(gradients_, there, 0, std::bit_ceil(places()));
    Places order = there;
    for (unsigned round = 0; round < 20; ++round) {
      for (unsigned own = 0; own < 3; ++own) {
        const auto is_own = [own](std::size_t place) {
          return own == 1 || (own == 2 && place % 3 == 0);
        };
        for (const bool as_halves : {true, false}) {
          EXPECT_EQ(bits_of(sum_of(sum_, gradients_, order, is_own, as_halves)), bits_of(expected))
              << testing::PrintToString(order) << ", own " << own;
        }
      }
      std::shuffle(order.begin(), order.end(), random_);
    }
    EXPECT_LE(sum_.buffers(), (places() + 3) / 4 + 1);
  }
};

TEST_P(TreeSumTest, IsTheTreeInEveryOrderOfArrival) {
  Places all(places());
  std::iota(all.begin(), all.end(), 0U);
  expect_all_the_same(all);
}

TEST_P(TreeSumTest, LeavesOutWhoIsMissing) {
  for (unsigned round = 0; round < 20; ++round) {
    Places there;
    for (std::size_t place = 0; place < places(); ++place) {
      if (random_() % 3 != 0) {
        there.push_back(place);
      }
    }
    if (there.empty()) {
      there.push_back(random_() % places());
    }
    expect_all_the_same(there);
  }
}

TEST_P(TreeSumTest, WritesIntoNoGradientThatIsNotItsOwn) {
  std::vector<Values> gradients = gradients_;
  const auto is_own = [](std::size_t place) { return place % 3 == 0; };
  for (std::size_t place = places(); place-- > 0;) {
    sum_.add(place, gradients[place],
             is_own(place) ? std::span<float>(gradients[place]) : std::span<float>());
  }
  static_cast<void>(sum_.whole());
  for (std::size_t place = 0; place < places(); ++place) {
    EXPECT_TRUE(is_own(place) || gradients[place] == gradients_[place]) << place;
  }
}

INSTANTIATE_TEST_SUITE_P(Places, TreeSumTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 16, 17, 31, 64, 100),
                         testing::PrintToStringParamName());

// ---- Sums of whole subtrees ----

// Positions [first, first + count): a subtree, cut off at the end of the positions.
struct Subtree {
  std::size_t first = 0;
  std::size_t count = 0;
};

// Splits the positions into whole subtrees of random sizes.
void split(std::size_t first, std::size_t size, std::size_t places, std::mt19937& random,
           std::vector<Subtree>& out) {
  if (first >= places) {
    return;
  }
  if (size == 1 || random() % 3 == 0) {
    out.push_back({.first = first, .count = std::min(size, places - first)});
    return;
  }
  split(first, size / 2, places, random, out);
  split(first + size / 2, size / 2, places, random, out);
}

class SubtreesTest : public TreeSumTest {
 protected:
  [[nodiscard]] Values sum_of_subtree(const Subtree& subtree) const {
    Places there(subtree.count);
    std::iota(there.begin(), there.end(), subtree.first);
    return reference(gradients_, there, subtree.first, std::bit_ceil(subtree.count));
  }
  [[nodiscard]] std::vector<Subtree> random_subtrees() {
    std::vector<Subtree> subtrees;
    split(0, std::bit_ceil(places()), places(), random_, subtrees);
    std::shuffle(subtrees.begin(), subtrees.end(), random_);
    return subtrees;
  }
  // Returns some of its positions, in any order, but not all.
  [[nodiscard]] Places some_of(const Subtree& subtree) {
    Places some(subtree.count);
    std::iota(some.begin(), some.end(), subtree.first);
    std::shuffle(some.begin(), some.end(), random_);
    some.resize(random_() % subtree.count);
    return some;
  }
  // The sum may write to the gradients of such positions, and to sums that begin there.
  [[nodiscard]] static bool is_own(std::size_t place, unsigned own) {
    return own == 1 || (own == 2 && place % 3 == 0);
  }

  // Adds the sums of these subtrees, some of whose positions have arrived before, and checks the
  // total.
  void expect_the_tree(const std::vector<Subtree>& subtrees, unsigned own, bool some_come_before) {
    std::vector<Values> gradients = gradients_;
    std::vector<Values> sums(places());
    const auto own_of = [own](std::size_t place, Values& values) {
      return is_own(place, own) ? std::span<float>(values) : std::span<float>();
    };
    for (const Subtree& subtree : subtrees) {
      for (const std::size_t place : some_come_before ? some_of(subtree) : Places()) {
        sum_.add(place, gradients[place], own_of(place, gradients[place]));
      }
    }
    std::vector<Values> before(places());
    for (const Subtree& subtree : subtrees) {
      Values& sum = sums[subtree.first];
      sum = sum_of_subtree(subtree);
      before[subtree.first] = sum;
      sum_.add_subtree(subtree.first, subtree.count, sum, own_of(subtree.first, sum));
    }
    const std::span<const float> whole = sum_.whole();
    EXPECT_EQ(bits_of(whole), bits_of(sum_of_subtree({.first = 0, .count = places()})));
    for (std::size_t place = 0; place < places(); ++place) {
      EXPECT_TRUE(is_own(place, own) ||
                  (gradients[place] == gradients_[place] && sums[place] == before[place]))
          << place << " is not its own";
    }
    sum_.clear();
  }
};

TEST_P(SubtreesTest, MakeTheTreeInEveryOrderOfArrival) {
  for (unsigned round = 0; round < 60; ++round) {
    expect_the_tree(random_subtrees(), round % 3, /*some_come_before=*/false);
  }
}

TEST_P(SubtreesTest, TakeThePlaceOfWhatCameOfThemBefore) {
  for (unsigned round = 0; round < 60; ++round) {
    expect_the_tree(random_subtrees(), round % 3, /*some_come_before=*/true);
  }
}

TEST_P(SubtreesTest, OfAllPlacesIsTheWhole) {
  for (unsigned own = 0; own < 3; ++own) {
    expect_the_tree({{.first = 0, .count = places()}}, own, /*some_come_before=*/true);
  }
}

// The buffers of added positions are reused, in this step and in later ones.
TEST_P(SubtreesTest, TakeNoMoreMemoryThanItSays) {
  for (unsigned round = 0; round < 200; ++round) {
    expect_the_tree(random_subtrees(), 0, /*some_come_before=*/true);
  }
  EXPECT_LE(sum_.buffers(), (places() + 3) / 4 + 1);
}

INSTANTIATE_TEST_SUITE_P(Places, SubtreesTest,
                         testing::Values(2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 31,
                                         64),
                         testing::PrintToStringParamName());

// Little work must remain when the last gradient arrives.
TEST(TreeSum, ASubtreesSumIsAddedToItsNeighboursAtOnce) {
  TreeSum sum(8, 1, Isa::kGeneric);
  Values first_pair = {1.0F};
  const Values second_pair = {2.0F};
  sum.add_subtree(0, 2, first_pair, first_pair);
  EXPECT_EQ(first_pair, Values{1.0F});
  sum.add_subtree(2, 2, second_pair, {});
  EXPECT_EQ(first_pair, Values{3.0F});
}

// The order of arrival that leaves the most sums waiting for others: the first two of each four,
// then the rest.
TEST(TreeSum, TakesNoMoreMemoryThanItSays) {
  constexpr std::size_t kPlaces = 64;
  const std::vector<Values> gradients = random_gradients(kPlaces);
  TreeSum sum(kPlaces, kFloats, Isa::kGeneric);
  for (const std::size_t pair : {std::size_t{0}, std::size_t{2}}) {
    for (std::size_t place = 0; place < kPlaces; ++place) {
      if (place % 4 == pair || place % 4 == pair + 1) {
        sum.add(place, gradients[place], {});
      }
    }
  }
  EXPECT_EQ(sum.buffers(), kPlaces / 4 + 1);
}

TEST(TreeSum, OfTwoIsLeftToTheUpdate) {
  TreeSum sum(2, 1, Isa::kGeneric);
  const Values one = {1.0F};
  const Values two = {2.0F};
  sum.add(1, two, {});
  sum.add(0, one, {});
  const TreeSum::Halves halves = sum.halves();
  EXPECT_EQ(halves.sum.data(), one.data());
  EXPECT_EQ(halves.last.data(), two.data());
}

// A ps may have no part of the vector.
TEST(TreeSum, OfNothingIsNothing) {
  TreeSum sum(4, 0, Isa::kGeneric);
  for (unsigned step = 0; step < 3; ++step) {
    for (std::size_t place = 0; place < 4; ++place) {
      sum.add(place, {}, {});
    }
    EXPECT_TRUE(sum.whole().empty());
    sum.clear();
  }
}

}  // namespace
}  // namespace disttf::math
