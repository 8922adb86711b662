#include "roles/launch/shell/reserved_port.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <system_error>

#include "net/tcp/listening.h"

namespace disttf::roles {
namespace {

using asio::ip::tcp;

class ReservedPortTest : public testing::Test {
 protected:
  std::error_code connect() {
    tcp::socket socket(context_);
    std::error_code error;
    socket.connect({asio::ip::address_v4::loopback(), port_.address().port}, error);
    return error;
  }
  asio::io_context context_;
  ReservedPort port_{context_};
};

TEST_F(ReservedPortTest, RefusesConnectionsWithoutAListener) {
  EXPECT_EQ(connect(), asio::error::connection_refused);
}

TEST_F(ReservedPortTest, IsListenedOnAgainAndAgain) {
  for (int each = 0; each < 3; ++each) {
    tcp::acceptor acceptor = port_.listen();
    EXPECT_EQ(acceptor.local_endpoint().port(), port_.address().port);
    EXPECT_FALSE(connect());
    acceptor.close();
    EXPECT_EQ(connect(), asio::error::connection_refused);
  }
}

// What a dead process leaves behind: connections that still close, on its side of the port.
TEST_F(ReservedPortTest, IsListenedOnBesideOldConnections) {
  tcp::acceptor acceptor = port_.listen();
  tcp::socket client(context_);
  client.connect({asio::ip::address_v4::loopback(), port_.address().port});
  const tcp::socket server = acceptor.accept();
  acceptor.close();
  EXPECT_NO_THROW(acceptor = port_.listen());
}

TEST_F(ReservedPortTest, IsNotGivenToAnotherProcess) {
  tcp::acceptor other(context_, tcp::v4());
  std::error_code error;
  other.bind({asio::ip::address_v4::loopback(), port_.address().port}, error);
  EXPECT_EQ(error, asio::error::address_in_use);
}

TEST_F(ReservedPortTest, IsFreeAfterwards) {
  std::uint16_t number = 0;
  {
    const ReservedPort port(context_);
    number = port.address().port;
  }
  EXPECT_NO_THROW(net::listen_on(context_, number, net::ListenScope::kLoopback));
}

TEST_F(ReservedPortTest, SaysWhyItCannotBeListenedOn) {
  const tcp::acceptor first = port_.listen();
  try {
    const tcp::acceptor second = port_.listen();
    FAIL();
  } catch (const std::system_error& error) {
    EXPECT_EQ(error.what(), "cannot listen on 127.0.0.1 port " +
                                std::to_string(port_.address().port) + ": Address already in use");
  }
}

TEST_F(ReservedPortTest, IsHeldByNoChild) {
  for (int fd = 0; fd < 64; ++fd) {
    sockaddr_in address{};
    socklen_t size = sizeof address;
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0 &&
        address.sin_family == AF_INET && ntohs(address.sin_port) == port_.address().port) {
      EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
      return;
    }
  }
  FAIL() << "no socket has the port";
}

}  // namespace
}  // namespace disttf::roles
