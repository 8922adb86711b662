// The state that a ps keeps for each of its connections.
#include "roles/ps/core/connection_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace disttf::roles {
namespace {

using ::testing::ElementsAre;

class ConnectionMapTest : public testing::Test {
 protected:
  ConnectionMapTest() {
    for (const ConnectionId id : {3U, 7U, 5U}) {
      connections_.emplace(id, std::to_string(id));
    }
  }
  [[nodiscard]] std::vector<ConnectionId> ids() const {
    std::vector<ConnectionId> all;
    for (auto&& [id, name] : connections_) {
      all.push_back(id);
    }
    return all;
  }

  ConnectionMap<std::string> connections_;
};

TEST_F(ConnectionMapTest, FindsWhatItHasAndNothingElse) {
  EXPECT_EQ(connections_.at(5), "5");
  EXPECT_EQ(connections_.find(7)->second, "7");
  EXPECT_TRUE(connections_.find(4) == connections_.end());
  EXPECT_TRUE(connections_.find(8) == connections_.end());
  EXPECT_THROW(static_cast<void>(connections_.at(4)), std::out_of_range);
}

TEST_F(ConnectionMapTest, GoesOverThemInTheOrderOfTheirIds) {
  EXPECT_THAT(ids(), ElementsAre(3, 5, 7));
}

TEST_F(ConnectionMapTest, AnotherOneOfTheSameIdIsNotTaken) {
  connections_.emplace(5, "again");
  EXPECT_EQ(connections_.at(5), "5");
}

// References to a value stay valid while other connections come and go.
TEST_F(ConnectionMapTest, AValueStaysWhereItIs) {
  const std::string* const seven = &connections_.at(7);
  EXPECT_EQ(connections_.erase(3), 1U);
  EXPECT_EQ(connections_.erase(3), 0U);
  connections_[4] = "4";
  EXPECT_EQ(seven, &connections_.at(7));
  EXPECT_THAT(ids(), ElementsAre(4, 5, 7));
}

}  // namespace
}  // namespace disttf::roles
