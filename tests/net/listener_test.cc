#include "net/tcp/listener.h"

#include <gmock/gmock.h>
#include <sys/resource.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <list>
#include <stdexcept>
#include <thread>
#include <vector>

#include "net/tcp/sockets.h"
#include "tests/net/test_server.h"
#include "tests/support/thrown.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ListenerTest : public ::testing::Test {
 protected:
  [[nodiscard]] OpenedChannel open(const TestServer& server, const Hello& hello) {
    return open_channel(server.address(), hello, interrupt_, patience());
  }
  // Expects that a HELLO is refused with a sentence that contains all of `parts`.
  void expect_refused(const Hello& hello, std::initializer_list<const char*> parts,
                      const ListenerOptions& options = ps0_options()) {
    LiveServer server(answer_every_header, options);
    const OpenedChannel opened = open(server, hello);
    EXPECT_EQ(opened.error, WireError::kRefused) << opened.error.message();
    EXPECT_EQ(opened.refusal.exit_code, kExitMisconfigured);
    for (const char* part : parts) EXPECT_THAT(opened.refusal.sentence, HasSubstr(part));
  }
  // Expects that bytes from a non-disttf client are counted, and that the server closes at once
  // without a reply.
  void expect_unauthenticated(std::string_view text, std::string_view why) {
    ListenerOptions options = ps0_options();
    options.handshake_timeout = 1h;
    LiveServer server(answer_every_header, options);
    RawClient client(server.address());
    client.write(text);
    EXPECT_TRUE(client.read_to_end().empty());
    EXPECT_TRUE(server.events().wait_for("before a valid HELLO: " + std::string(why)));
    EXPECT_EQ(server.ask([](Listener& listener) { return listener.unauthenticated_peers(); }), 1U);
  }
  // Returns the refusal with which a server answers these bytes; nullopt if there is none.
  static std::optional<Refusal> refusal_of(std::span<const std::byte> bytes) {
    LiveServer server(answer_every_header);
    RawClient client(server.address());
    client.write(bytes);
    return refusal_in(client.read_to_end());
  }
  [[nodiscard]] bool is_served(const TestServer& server) {
    const OpenedChannel opened = open(server, hello_of_worker_1());
    FrameHeader header{.kind = FrameKind::kPull, .request_id = 3};
    return opened.channel && !opened.channel->send(header, {}, patience()) &&
           !opened.channel->receive_header(header, patience()) && header.kind == FrameKind::kAck;
  }

  Interrupt interrupt_;
};

TEST_F(ListenerTest, WelcomesATaskOfTheCluster) {
  LiveServer server(answer_every_header);
  const OpenedChannel opened = open(server, hello_of_worker_1());
  ASSERT_TRUE(opened.channel) << opened.error.message();
  EXPECT_EQ(opened.welcome.step, 9U);
}

TEST_F(ListenerTest, RefusesAHelloForAnotherTask) {
  Cluster theirs = two_ps_two_workers();
  std::swap(theirs.ps[0], theirs.ps[1]);
  Hello hello = hello_of_worker_1();
  hello.cluster = hash_of(theirs);
  hello.to = {Job::kPs, 1};
  expect_refused(hello, {"this is ps 0 (ps0:2222), not ps 1: --ps_hosts differs between tasks"});
}

TEST_F(ListenerTest, RefusesAHelloThatCameToTheWrongAddress) {
  Hello hello = hello_of_worker_1();
  hello.to = {Job::kPs, 1};
  expect_refused(hello, {"not ps 1: the address of ps 1 leads to the wrong task"});
}

TEST_F(ListenerTest, RefusesOtherAddressLists) {
  Hello hello = hello_of_worker_1();
  hello.cluster[0] = static_cast<std::uint8_t>(hello.cluster[0] ^ 1U);
  expect_refused(hello, {"your address lists", short_hex(hello.cluster).c_str(),
                         short_hex(hash_of(two_ps_two_workers())).c_str()});
}

TEST_F(ListenerTest, DoesNotAnswerForATaskThatIsNotThereYet) {
  Hello hello = hello_of_worker_1();
  hello.cluster[0] = static_cast<std::uint8_t>(hello.cluster[0] ^ 1U);
  ListenerOptions options = ps0_options();
  options.vacant = hello.cluster;
  LiveServer server(answer_every_header, options);
  const OpenedChannel opened = open(server, hello);
  EXPECT_FALSE(opened.channel);
  EXPECT_NE(opened.error, WireError::kRefused);
}

TEST_F(ListenerTest, TellsAnotherDriverThatItIsAtWork) {
  Hello hello = hello_of_worker_1();
  hello.cluster[0] = static_cast<std::uint8_t>(hello.cluster[0] ^ 1U);
  ListenerOptions options = ps0_options();
  options.busy = hello.cluster;
  LiveServer server(answer_every_header, options);
  const OpenedChannel opened = open(server, hello);
  EXPECT_EQ(opened.refusal, (Refusal{.exit_code = kExitRestartMe,
                                     .sentence = "ps 0 (ps0:2222) is busy with another driver"}));
}

TEST_F(ListenerTest, RefusesATaskThatIsNotListed) {
  Hello hello = hello_of_worker_1();
  hello.from = {Job::kWorker, 2};
  expect_refused(hello, {"there is no worker 2", "has 2 of job worker", "--max_workers"});
}

TEST_F(ListenerTest, WelcomesAnEvaluatorThatIsNotListed) {
  LiveServer server(answer_every_header);
  Hello hello = hello_of_worker_1();
  hello.from = {Job::kEvaluator, 0};
  EXPECT_TRUE(open(server, hello).channel);
}

TEST_F(ListenerTest, WelcomesAWorkerThatKnowsOnlyItself) {
  LiveServer server(answer_every_header);
  Hello hello = hello_of_worker_1();
  hello.cluster = sparse_hash_of(two_ps_two_workers());
  EXPECT_TRUE(open(server, hello).channel);
}

TEST_F(ListenerTest, PassesOnTheOwnersRefusal) {
  TestServer server(answer_every_header);
  server.refuse_all({.exit_code = 7, .sentence = "the run has failed"});
  server.start();
  const OpenedChannel opened = open(server, hello_of_worker_1());
  EXPECT_EQ(opened.refusal, (Refusal{.exit_code = 7, .sentence = "the run has failed"}));
}

TEST_F(ListenerTest, TellsAnotherWireVersionWhatItSpeaks) {
  std::vector<std::byte> bytes = frame_bytes({}, encode(hello_of_worker_1()));
  bytes[4] = std::byte{9};
  const auto refusal = refusal_of(bytes);
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->sentence, HasSubstr("speaks wire version 7"));
}

TEST_F(ListenerTest, RefusesAFrameBeforeHello) {
  const auto refusal = refusal_of(frame_bytes({.kind = FrameKind::kPull}, {}));
  ASSERT_TRUE(refusal);
  EXPECT_THAT(refusal->sentence, HasSubstr("expected a HELLO"));
}

TEST_F(ListenerTest, RefusesAHelloWhoseBodyDoesNotDecode) {
  EXPECT_TRUE(refusal_of(frame_bytes({}, std::vector<std::byte>(kBodyBytes<Hello>))));
}

TEST_F(ListenerTest, RefusesAHugeHelloWithoutReadingIt) {
  std::vector<std::byte> bytes(kHeaderBytes);
  encode_header({.body_size = std::uint64_t{1} << 60U}, std::span(bytes).first<kHeaderBytes>());
  EXPECT_TRUE(refusal_of(bytes));
}

TEST_F(ListenerTest, ClosesAnHttpClientAtOnce) {
  expect_unauthenticated("GET / HTTP/1.0\r\n\r\n", "not a disttf frame");
}
// The client may be a task with a secret, which must end with a clear message.
TEST_F(ListenerTest, TellsATlsClientAtOnceThatNoneIsSpoken) {
  ListenerOptions options = ps0_options();
  options.handshake_timeout = 1h;
  LiveServer server(answer_every_header, options);
  RawClient client(server.address());
  client.write(std::string_view("\x16\x03\x01\x02", 4));
  const auto refusal = refusal_in(client.read_to_end());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->exit_code, kExitMisconfigured);
  EXPECT_EQ(refusal->sentence, "ps 0 (ps0:2222) has no secret or certificate for TLS");
}

TEST_F(ListenerTest, TakesNoNoiseForTls) {
  expect_unauthenticated("\x16\x17", "not a disttf frame");
}

TEST_F(ListenerTest, ClosesOnTheFirstWrongByte) {
  expect_unauthenticated("DTG", "not a disttf frame");
}

TEST_F(ListenerTest, ClosesOnAWrongChecksum) {
  std::vector<std::byte> bytes = frame_bytes({}, encode(hello_of_worker_1()));
  bytes[63] ^= std::byte{1};
  expect_unauthenticated({reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                         make_error_code(WireError::kBadChecksum).message());
}

TEST_F(ListenerTest, CutsOffASilentClient) {
  ListenerOptions options = ps0_options();
  options.handshake_timeout = 30ms;
  LiveServer server(answer_every_header, options);
  RawClient client(server.address());
  EXPECT_TRUE(client.read_to_end().empty());
  EXPECT_TRUE(server.events().wait_for("timed out"));
}

TEST_F(ListenerTest, CutsOffAClientThatStallsInItsHello) {
  ListenerOptions options = ps0_options();
  options.handshake_timeout = 30ms;
  LiveServer server(answer_every_header, options);
  RawClient client(server.address());
  const std::vector<std::byte> bytes = frame_bytes({}, encode(hello_of_worker_1()));
  client.write(std::span(bytes).first(bytes.size() - 1));
  EXPECT_TRUE(client.read_to_end().empty());
}

// Options with room for few connections and a time limit longer than any test.
ListenerOptions with_room_for(std::size_t most) {
  ListenerOptions options = ps0_options();
  options.max_pending = most;
  options.handshake_timeout = 1h;
  return options;
}

TEST_F(ListenerTest, ServesAnHonestTaskAmongManySilentOnes) {
  LiveServer server(answer_every_header, with_room_for(16));
  std::list<RawClient> silent;
  for (int i = 0; i < 600; ++i) silent.emplace_back(server.address());
  EXPECT_TRUE(is_served(server));
  EXPECT_LE(server.ask([](Listener& listener) { return listener.connections(); }), 16U + 1U);
  EXPECT_GE(server.ask([](Listener& listener) { return listener.unauthenticated_peers(); }),
            600U - 16U);
}

// Unfinished handshakes in all but one of the places: a new connection that has not sent anything
// yet is not the first to be closed.
TEST_F(ListenerTest, TheOldestMakesRoomWhateverItHasSaid) {
  constexpr std::size_t kRoom = 4;
  LiveServer server(answer_every_header, with_room_for(kRoom));
  std::list<RawClient> begun;
  const std::vector<std::byte> bytes = frame_bytes({}, encode(hello_of_worker_1()));
  for (std::size_t each = 0; each + 1 < kRoom; ++each) {
    begun.emplace_back(server.address()).write(std::span(bytes).first(1));
  }
  RawClient late(server.address());
  const auto connections = [&server] {
    return server.ask([](Listener& listener) { return listener.connections(); });
  };
  while (connections() < kRoom) std::this_thread::yield();  // or the test's limit
  RawClient silent(server.address());
  EXPECT_TRUE(begun.front().read_to_end().empty());
  late.write(bytes);
  EXPECT_TRUE(late.hears());
}

TEST_F(ListenerTest, StaysBelowItsLimitOfConnections) {
  ListenerOptions options = ps0_options();
  options.max_connections = 2;
  options.handshake_timeout = 1h;
  LiveServer server(answer_every_header, options);
  const OpenedChannel first = open(server, hello_of_worker_1());
  const OpenedChannel second = open(server, hello_of_worker_1());
  EXPECT_TRUE(RawClient(server.address()).read_to_end().empty());
  EXPECT_EQ(server.ask([](Listener& listener) { return listener.connections(); }), 2U);
}

// A task of the run is authenticated, but may not use all connections.
TEST_F(ListenerTest, OfATaskTheOldestConnectionMakesRoom) {
  ListenerOptions options = ps0_options();
  options.max_of_task = 3;
  LiveServer server(answer_every_header, options);
  Hello other = hello_of_worker_1();
  other.from.index = 0;
  const OpenedChannel stays = open(server, other);
  std::list<OpenedChannel> of_one;
  for (int i = 0; i < 5; ++i) {
    of_one.push_back(open(server, hello_of_worker_1()));
    ASSERT_TRUE(of_one.back().channel);
  }
  const auto is_answered = [](const OpenedChannel& opened) {
    FrameHeader header{.kind = FrameKind::kPull, .request_id = 3};
    return !opened.channel->send(header, {}, patience()) &&
           !opened.channel->receive_header(header, patience());
  };
  EXPECT_TRUE(is_answered(stays));
  std::vector<bool> answered;
  for (const OpenedChannel& each : of_one) answered.push_back(is_answered(each));
  EXPECT_THAT(answered, ::testing::ElementsAre(false, false, true, true, true));
  // Closed connections no longer count.
  for (auto& each : of_one) each.channel->close();
  EXPECT_TRUE(is_answered(open(server, hello_of_worker_1())));
}

// Evaluators are not listed, so one process could pretend to be many.
TEST_F(ListenerTest, OfEvaluatorsTheNewestIsOneTooMany) {
  ListenerOptions options = ps0_options();
  options.max_of_task = 2;
  LiveServer server(answer_every_header, options);
  Hello hello = hello_of_worker_1();
  hello.from = {.job = Job::kEvaluator, .index = 0};
  OpenedChannel first = open(server, hello);
  const OpenedChannel second = open(server, hello);
  ASSERT_TRUE(first.channel && second.channel);
  const OpenedChannel third = open(server, hello);
  EXPECT_FALSE(third.channel);
  EXPECT_NE(third.error, WireError::kRefused) << "it may try again";
  EXPECT_TRUE(server.events().wait_for("evaluators have 2 connections already"));
  hello.purpose = ChannelPurpose::kProbe;
  EXPECT_TRUE(open(server, hello).channel) << "it is closed at once";
  first.channel->close();
  hello.purpose = ChannelPurpose::kStep;
  const auto until = Clock::now() + 30s;
  OpenedChannel later;
  while (!later.channel && Clock::now() < until) later = open(server, hello);
  EXPECT_TRUE(later.channel);
  EXPECT_TRUE(is_served(server)) << "a trainer is not affected";
}

TEST_F(ListenerTest, OutlivesALackOfDescriptors) {
  TestServer server(answer_every_header);
  std::list<RawClient> waiting;
  for (int i = 0; i < 20; ++i) waiting.emplace_back(server.address());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next_free = ::dup(STDIN_FILENO);
  ::close(next_free);
  const rlimit tight{static_cast<rlim_t>(next_free) + 3, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  server.start();
  EXPECT_TRUE(server.events().wait_for("cannot accept connections"));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_served(server));
}

TEST_F(ListenerTest, ClosesAProbeAfterItsWelcome) {
  LiveServer server([](const Connection&) -> asio::awaitable<void> {
    throw std::runtime_error("a probe was served");
    co_return;
  });
  Hello hello = hello_of_worker_1();
  hello.purpose = ChannelPurpose::kProbe;
  const OpenedChannel opened = open(server, hello);
  ASSERT_TRUE(opened.channel);
  FrameHeader header;
  EXPECT_EQ(opened.channel->receive_header(header, patience()), asio::error::eof);
}

TEST_F(ListenerTest, HandsExceptionsToItsOwner) {
  LiveServer server([](const Connection&) -> asio::awaitable<void> {
    throw std::runtime_error("the owner's bug");
    co_return;
  });
  const OpenedChannel opened = open(server, hello_of_worker_1());
  EXPECT_TRUE(server.events().wait_for("error: the owner's bug"));
}

TEST_F(ListenerTest, FreesTheSocketOfAClientThatLeft) {
  Connection kept;  // the owner's table may keep it
  LiveServer server([&server, &kept](Connection connection) -> asio::awaitable<void> {
    kept = connection;
    FrameHeader header;
    static_cast<void>(co_await connection->read_header(header, 0ms));
    server.events().add("left");
  });
  open(server, hello_of_worker_1()).channel.reset();
  EXPECT_TRUE(server.events().wait_for("left"));
  EXPECT_EQ(server.ask([](Listener& listener) { return listener.connections(); }), 0U);
  server.ask([&](Listener&) { kept.reset(); });
}

TEST_F(ListenerTest, StopsListening) {
  LiveServer server(answer_every_header);
  server.ask([](Listener& listener) { listener.stop(); });
  std::error_code error;
  EXPECT_EQ(connect_tcp(server.address(), interrupt_, patience(), error), nullptr);
  EXPECT_EQ(error, std::errc::connection_refused);
}

TEST(ListenOn, SaysWhichPortIsTaken) {
  asio::io_context context;
  const auto first = listen_on(context, 0, ListenScope::kLoopback);
  const std::uint16_t port = first.local_endpoint().port();
  const auto error =
      thrown<std::system_error>([&] { return listen_on(context, port, ListenScope::kLoopback); });
  ASSERT_TRUE(error);
  EXPECT_EQ(std::string(error->what()),
            "cannot listen on 127.0.0.1 port " + std::to_string(port) + ": Address already in use");
}

TEST(AdoptListening, TakesOverAListeningSocket) {
  asio::io_context context;
  auto opened = listen_on(context, 0, ListenScope::kLoopback);
  const std::uint16_t port = opened.local_endpoint().port();
  const auto adopted = adopt_listening(context, opened.release());
  EXPECT_EQ(adopted.local_endpoint().port(), port);
}

TEST(AdoptListening, RefusesASocketThatDoesNotListen) {
  asio::io_context context;
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  EXPECT_THROW(static_cast<void>(adopt_listening(context, fd)), std::system_error);
}

}  // namespace
}  // namespace disttf::net
