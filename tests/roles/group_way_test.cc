#include "roles/trainer/core/group_way.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "net/wire/messages.h"

namespace disttf::roles {
namespace {

constexpr GroupWay::Ranges kAll = ~GroupWay::Ranges{0};

// Four trainers on host a, then two on host b.
net::Cluster two_hosts() {
  net::Cluster cluster;
  cluster.ps = {{"p", 1}};
  for (std::uint16_t port = 1; port <= 6; ++port) {
    cluster.workers.push_back({port <= 4 ? "a" : "b", port});
  }
  return cluster;
}

GroupWay decided(GroupWay::Ranges summed) {
  GroupWay way(two_hosts(), 1);
  way.begin(3, 7);
  way.decide(summed);
  return way;
}

TEST(GroupWay, TheFirstOfAHostLeadsTheOthers) {
  for (const std::size_t rank : {0U, 4U}) {
    const GroupWay way(two_hosts(), rank);
    EXPECT_TRUE(way.has_neighbours());
    EXPECT_TRUE(way.leads());
    EXPECT_EQ(way.members(), rank == 0 ? 3U : 1U);
  }
  for (const std::size_t rank : {1U, 2U, 3U, 5U}) {
    const GroupWay way(two_hosts(), rank);
    EXPECT_TRUE(way.has_neighbours());
    EXPECT_FALSE(way.leads());
    EXPECT_EQ(way.members(), rank < 4 ? 3U : 1U);
    EXPECT_EQ(way.member(), rank < 4 ? rank - 1 : 0U);
  }
}

TEST(GroupWay, ATrainerAloneOnItsHostLeadsNoGroup) {
  net::Cluster cluster = two_hosts();
  cluster.workers.resize(1);
  const GroupWay way(cluster, 0);
  EXPECT_FALSE(way.has_neighbours());
  EXPECT_TRUE(way.leads());
  EXPECT_EQ(way.members(), 0U);
}

TEST(GroupWay, KnowsTheStateWhoseGradientIsPushedAndNoOther) {
  GroupWay way(two_hosts(), 1);
  EXPECT_FALSE(way.knows(0, 0)) << "none has begun";
  way.begin(3, 7);
  EXPECT_TRUE(way.knows(3, 7));
  EXPECT_FALSE(way.knows(3, 8));
  EXPECT_FALSE(way.knows(4, 7));
  way.begin(3, 8);
  EXPECT_FALSE(way.knows(3, 7));
}

TEST(GroupWay, EachGradientGoesByItselfUntilItIsDecided) {
  GroupWay way(two_hosts(), 1);
  EXPECT_FALSE(way.is_summed(0));
  way.begin(3, 7);
  EXPECT_FALSE(way.is_summed(0));
  way.decide(0b101);
  EXPECT_TRUE(way.is_summed(0));
  EXPECT_FALSE(way.is_summed(1));
  EXPECT_TRUE(way.is_summed(2));
  way.begin(3, 8);
  EXPECT_FALSE(way.is_summed(0)) << "that was of another state";
}

TEST(GroupWay, PsForWhichThereIsNoBitAreSentEachGradient) {
  const GroupWay way = decided(kAll);
  EXPECT_TRUE(way.is_summed(GroupWay::kMostRanges - 1));
  for (const std::size_t range : {std::size_t{64}, std::size_t{65}, std::size_t{128}}) {
    EXPECT_FALSE(way.is_summed(range)) << range;
  }
}

TEST(GroupWay, HeadersSayOfASumThatItIsOne) {
  const GroupWay way = decided(0b10);
  const net::FrameHeader header =
      net::PushPull{.request_id = 4, .step = 7, .keep_snapshot = true, .generation = 3}.to_header();
  EXPECT_EQ(way.marked(header, 0), header);
  net::PushPull push;
  ASSERT_FALSE(push.from_header(way.marked(header, 1)));
  EXPECT_EQ(
      push,
      (net::PushPull{
          .request_id = 4, .step = 7, .keep_snapshot = true, .group_sum = true, .generation = 3}));
}

// The ps that have answered may be more than those that were sent the sum, or fewer.
TEST(GroupWay, AMemberWhoseLeaderHasGonePushesByItselfWhatIsNotAnswered) {
  GroupWay way = decided(0b1110);
  EXPECT_EQ(way.part(0b0011), 0b1100U);
  EXPECT_FALSE(way.is_summed(0));
  EXPECT_TRUE(way.is_summed(1)) << "the leader has left what it leads to";
  EXPECT_FALSE(way.is_summed(2));
  EXPECT_FALSE(way.is_summed(3));
  EXPECT_EQ(way.part(0b0010), 0U) << "once";
  EXPECT_TRUE(way.knows(3, 7)) << "so it stays";
}

TEST(GroupWay, FromOnePsAMemberMayPartAlone) {
  GroupWay way = decided(kAll);
  way.part_from(1);
  EXPECT_TRUE(way.is_summed(0));
  EXPECT_FALSE(way.is_summed(1));
  EXPECT_TRUE(way.is_summed(2));
  way.part_from(63);
  EXPECT_FALSE(way.is_summed(63));
  EXPECT_TRUE(way.is_summed(62));
}

}  // namespace
}  // namespace disttf::roles
