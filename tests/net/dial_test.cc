#include "net/tcp/dial.h"

#include <gmock/gmock.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/error.hpp>
#include <asio/io_context.hpp>
#include <filesystem>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "net/tcp/lookup.h"
#include "net/tcp/sockets.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

class DialTest : public ::testing::Test {
 protected:
  [[nodiscard]] Dialed dial_and_wait(const Address& address, std::chrono::milliseconds timeout) {
    Dialed dialed;
    NameLookup lookup;
    run([&]() -> asio::awaitable<void> {
      dialed = co_await dial(context_, address, hello_of_worker_1(), {}, timeout, lookup);
    });
    return dialed;
  }

  void run(std::function<asio::awaitable<void>()> coroutine) {
    asio::co_spawn(context_, coroutine, [this](const std::exception_ptr& failure) {
      EXPECT_FALSE(failure);
      context_.stop();  // the timer of a connection may be set far ahead
    });
    context_.restart();
    context_.run();
  }

  asio::io_context context_{1};
};

TEST_F(DialTest, IsWelcomedAndExchangesFrames) {
  LiveServer server(answer_every_header);
  const Dialed dialed = dial_and_wait(server.address(), 30s);
  ASSERT_TRUE(dialed.connection) << dialed.error.message();
  EXPECT_EQ(dialed.welcome.step, 9U);
  EXPECT_NE(dialed.connection->peer_text().find("ps 0 (127.0.0.1:"), std::string::npos);
  FrameHeader header;
  run([&]() -> asio::awaitable<void> {
    dialed.connection->send({.kind = FrameKind::kPull, .request_id = 3});
    EXPECT_FALSE(co_await dialed.connection->read_header(header, 30s));
    dialed.connection->close();
  });
  EXPECT_EQ(header.kind, FrameKind::kAck);
  EXPECT_EQ(header.request_id, 3U);
}

TEST_F(DialTest, BringsTheSentenceOfARefusal) {
  TestServer server(answer_every_header);
  server.refuse_all({.exit_code = kExitRestartMe, .sentence = "the run has failed"});
  server.start();
  const Dialed dialed = dial_and_wait(server.address(), 30s);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, WireError::kRefused);
  EXPECT_EQ(dialed.refusal.sentence, "the run has failed");
}

TEST_F(DialTest, FailsWithoutAListener) {
  std::optional<TestServer> server(std::in_place, answer_every_header);
  const Address address = server->address();
  server.reset();
  const Dialed dialed = dial_and_wait(address, 30s);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, asio::error::connection_refused);
}

// The kernel accepts connections for a listener that never answers.
TEST_F(DialTest, GivesUpOnSilence) {
  const TestServer server(answer_every_header);
  const Dialed dialed = dial_and_wait(server.address(), 50ms);
  EXPECT_FALSE(dialed.connection);
  EXPECT_EQ(dialed.error, std::errc::timed_out);
}

// A name server that answers one question and drops the other.

using asio::ip::tcp;
using Endpoints = std::vector<tcp::endpoint>;

const Address kName{.host = "ps0.test", .port = 2222};
const tcp::endpoint kIpv4(asio::ip::make_address("10.0.0.7"), 2222);
const tcp::endpoint kIpv6(asio::ip::make_address("fd00::7"), 2222);

Deadline long_enough() { return Clock::now() + 60s; }

// A name server that answers `dropped` only after the test has ended.
class NameServer {
 public:
  explicit NameServer(Family answered, Endpoints answer)
      : answered_(answered), answer_(std::move(answer)) {}
  ~NameServer() { ended_.set_value(); }

  [[nodiscard]] Ask ask() const {
    return [answered = answered_, answer = answer_, end = end_](
               const Address&, Family family, std::error_code& error) -> Endpoints {
      if (family == answered) return answer;
      end.wait();
      error = asio::error::host_not_found;
      return {};
    };
  }

 private:
  Family answered_;
  Endpoints answer_;
  std::promise<void> ended_;
  std::shared_future<void> end_ = ended_.get_future().share();
};

TEST(Lookup, UsesTheAddressesOfTheFamilyThatIsAnswered) {
  for (const auto& [family, endpoint] :
       {std::pair(Family::kIpv4, kIpv4), std::pair(Family::kIpv6, kIpv6)}) {
    const NameServer server(family, {endpoint});
    Interrupt interrupt;
    std::error_code error;
    EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, server.ask()), Endpoints{endpoint});
    EXPECT_FALSE(error) << error.message();
  }
}

TEST(Lookup, UsesThemInAnEventLoopToo) {
  const NameServer server(Family::kIpv4, {kIpv4});
  NameLookup lookup(server.ask());
  asio::io_context context{1};
  Endpoints endpoints;
  std::error_code error;
  asio::co_spawn(
      context,
      [&]() -> asio::awaitable<void> {
        endpoints = co_await lookup.resolve(context.get_executor(), kName, long_enough(), error);
      },
      asio::detached);
  context.run();
  EXPECT_EQ(endpoints, Endpoints{kIpv4});
  EXPECT_FALSE(error) << error.message();
}

TEST(Lookup, KeepsTheOrderOfBothFamiliesWhereBothAreAnswered) {
  const NameServer server(Family::kBoth, {kIpv6, kIpv4});
  Interrupt interrupt;
  std::error_code error;
  const Endpoints both{kIpv6, kIpv4};
  EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, server.ask()), both);
}

TEST(Lookup, EndsWithTheReasonOfTheQuestionForBothWhereNoneHasAnAddress) {
  const Ask ask = [](const Address&, Family family, std::error_code& error) -> Endpoints {
    error = family == Family::kBoth ? asio::error::host_not_found_try_again
                                    : asio::error::make_error_code(asio::error::no_data);
    return {};
  };
  Interrupt interrupt;
  std::error_code error;
  EXPECT_EQ(resolve(kName, interrupt, long_enough(), error, ask), Endpoints{});
  EXPECT_EQ(error, asio::error::host_not_found_try_again);
}

TEST(Lookup, WaitsForTheOtherFamilyWhereOneHasNoAddress) {
  const auto ipv4_was_asked = std::make_shared<std::promise<void>>();
  const std::shared_future<void> asked = ipv4_was_asked->get_future().share();
  const Ask ask = [ipv4_was_asked, asked](const Address&, Family family,
                                          std::error_code& error) -> Endpoints {
    if (family == Family::kIpv4) {
      ipv4_was_asked->set_value();
      error = asio::error::no_data;
      return {};
    }
    asked.wait();
    return family == Family::kIpv6 ? Endpoints{kIpv6} : Endpoints{};
  };
  std::error_code error;
  const std::shared_ptr<Lookup> lookup = start_lookup(kName, error, ask);
  ask_each_family(lookup);
  Interrupt interrupt;
  ASSERT_FALSE(wait_for(lookup->done.fd(), POLLIN, interrupt, long_enough()));
  EXPECT_EQ(result_of(*lookup, error), Endpoints{kIpv6});
}

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
  LiveServer server(answer_every_header);
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
