#include "math/large_copies.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

namespace disttf::math {
namespace {

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
