#include "net/tcp/same_host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "net/tcp/listening.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

std::string congestion_control(int socket) {
  std::array<char, 32> name{};
  auto size = static_cast<socklen_t>(name.size());
  return ::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &size) == 0
             ? std::string(name.data())
             : std::string();
}

// Returns the congestion control of each connected TCP socket of this process.
std::vector<std::string> congestion_controls_of_connections() {
  std::vector<std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename().string());
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.ss_family != AF_UNIX) {
      all.push_back(congestion_control(fd));
    }
  }
  return all;
}

TEST(SameHost, BothEndsOfAConnectionOverLoopbackSendUnpaced) {
  TestServer server(answer_every_header);
  server.start();
  const Interrupt interrupt;
  const OpenedChannel opened =
      open_channel(server.address(), hello_of_worker_1(), interrupt, patience());
  ASSERT_FALSE(opened.error) << opened.error.message();
  EXPECT_EQ(congestion_controls_of_connections(), (std::vector<std::string>{"reno", "reno"}));
}

TEST(SameHost, AConnectionAcceptedOverLoopbackIsNotPaced) {
  asio::io_context context;
  auto acceptor = listen_on(context, 0, ListenScope::kLoopback);
  EXPECT_EQ(congestion_control(acceptor.native_handle()), "reno");
  auto inherited = adopt_listening(context, acceptor.release());
  EXPECT_EQ(congestion_control(inherited.native_handle()), "reno");
}

TEST(SameHost, NetworksKeepWhatTheHostHas) {
  asio::io_context context;
  auto acceptor = listen_on(context, 0);
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(congestion_control(acceptor.native_handle()), congestion_control(fd));
  ::close(fd);
}

TEST(SameHost, LoopbackIsToldFromOtherAddresses) {
  for (const char* text : {"127.0.0.1", "127.1.2.3", "::1", "::ffff:127.0.0.1"}) {
    EXPECT_TRUE(is_loopback(asio::ip::make_address(text))) << text;
  }
  for (const char* text : {"0.0.0.0", "10.0.0.1", "::", "fe80::1", "::ffff:10.0.0.127"}) {
    EXPECT_FALSE(is_loopback(asio::ip::make_address(text))) << text;
  }
}

TEST(SameHost, HostsOfListsAreThisMachineOnlyWhereAllTasksTakeThemForIt) {
  for (const char* text : {"localhost", "127.0.0.1", "127.1.2.3", "::1"}) {
    EXPECT_TRUE(is_loopback_host(text)) << text;
  }
  for (const char* text : {"", "localhost.example", "127.0.0.1.example", "w0", "10.0.0.1", "::"}) {
    EXPECT_FALSE(is_loopback_host(text)) << text;
  }
}

TEST(ListenAs, ALoopbackAddressIsReachedFromThisHostAlone) {
  asio::io_context context;
  const auto at = [&context](const std::string& host) {
    return listen_as(context, {host, 0}).local_endpoint().address().to_string();
  };
  EXPECT_EQ(at("localhost"), "127.0.0.1");
  EXPECT_EQ(at("127.0.0.3"), "127.0.0.3");
  EXPECT_EQ(at("::1"), "::1");
  for (const char* host : {"w0", "10.0.0.1"}) {
    EXPECT_THAT(at(host), testing::AnyOf("::", "0.0.0.0")) << host;
  }
}

}  // namespace
}  // namespace disttf::net
