#include <gtest/gtest.h>

#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <cstdint>
#include <optional>
#include <system_error>

#include "net/tcp/sockets.h"
#include "run/process/task_listener.h"
#include "run/task.h"
#include "tests/support/thrown.h"

namespace disttf::roles {
namespace {

class Predecessor : public testing::Test {
 protected:
  asio::ip::tcp::acceptor listen() {
    return net::listen_on(context_, 0, net::ListenScope::kLoopback);
  }
  asio::io_context context_;
};

TEST_F(Predecessor, IsWaitedFor) {
  std::optional<asio::ip::tcp::acceptor> first(listen());
  const std::uint16_t port = first->local_endpoint().port();
  int tries = 0;
  const auto second = listen_after_predecessor("a port", [&] {
    if (++tries == 3) first.reset();
    return net::listen_on(context_, port, net::ListenScope::kLoopback);
  });
  EXPECT_EQ(second.local_endpoint().port(), port);
  EXPECT_EQ(tries, 3);
}

TEST_F(Predecessor, ThatStaysIsAnErrorInTheEnd) {
  const auto first = listen();
  int tries = 0;
  const auto error = thrown<std::system_error>([&] {
    const auto second = listen_after_predecessor("a port", [&] {
      ++tries;
      return net::listen_on(context_, first.local_endpoint().port(), net::ListenScope::kLoopback);
    });
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), asio::error::address_in_use);
  EXPECT_GT(tries, 1);
}

TEST_F(Predecessor, IsNotWhatAnotherErrorWaitsFor) {
  int tries = 0;
  EXPECT_THROW(static_cast<void>(listen_after_predecessor("a port",
                                                          [&]() -> asio::ip::tcp::acceptor {
                                                            ++tries;
                                                            throw std::system_error(
                                                                asio::error::access_denied);
                                                          })),
               std::system_error);
  EXPECT_EQ(tries, 1);
}

using std::chrono::milliseconds;

constexpr std::uint64_t kAllBits = ~std::uint64_t{0};

TEST(Incarnation, WhoBeginsLaterHasTheHigherOne) {
  EXPECT_LT(make_incarnation(milliseconds(1'700'000'000'000), kAllBits),
            make_incarnation(milliseconds(1'700'000'000'001), 0));
}

TEST(Incarnation, TwoOfOneMomentDiffer) {
  EXPECT_NE(make_incarnation(milliseconds(5), 1), make_incarnation(milliseconds(5), 2));
}

TEST(Incarnation, IsTheClocksWhereThatIsAheadOfTheOther) {
  const std::uint64_t other = make_incarnation(milliseconds(5), 9);
  const std::uint64_t fresh = make_incarnation(milliseconds(6), 3);
  EXPECT_EQ(incarnation_above(other, fresh), fresh);
}

TEST(Incarnation, IsAboveTheOtherWhereTheClockIsBehind) {
  const std::uint64_t other = make_incarnation(milliseconds(500), kAllBits);
  const std::uint64_t taken = incarnation_above(other, make_incarnation(milliseconds(6), 3));
  EXPECT_EQ(taken, make_incarnation(milliseconds(501), 3));
  EXPECT_GT(taken, other);
}

}  // namespace
}  // namespace disttf::roles
