#include "net/tcp/channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/error.hpp>
#include <future>
#include <string>
#include <thread>

#include "net/tcp/lookup.h"
#include "net/tcp/sockets.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

// A channel whose peer is a bare socket that the test controls.
class ChannelTest : public ::testing::Test {
 protected:
  ChannelTest() : acceptor_(listen_on(context_, 0, ListenScope::kLoopback)), peer_(context_) {
    std::error_code error;
    channel_ = connect_tcp({"127.0.0.1", port()}, interrupt_, patience(), error);
    EXPECT_TRUE(channel_) << error.message();
    acceptor_.accept(peer_);
  }
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  void peer_writes(std::span<const std::byte> bytes) {
    asio::write(peer_, asio::buffer(bytes.data(), bytes.size()));
  }

  Interrupt interrupt_;
  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket peer_;
  std::unique_ptr<Channel> channel_;
  FrameHeader header_;
};

TEST_F(ChannelTest, SendsHeaderAndBodyAsOneFrame) {
  const std::vector<std::byte> body(100, std::byte{5});
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPushPull, .step = 3}, body, patience()));
  std::vector<std::byte> received(kHeaderBytes + body.size());
  asio::read(peer_, asio::buffer(received));
  EXPECT_EQ(received, frame_bytes({.kind = FrameKind::kPushPull, .step = 3}, body));
}

TEST_F(ChannelTest, SendsAFrameWhileItsBodyIsBeingMade) {
  std::vector<std::byte> body(100, std::byte{5});
  const FrameHeader header{.kind = FrameKind::kPushPull, .step = 3};
  const std::vector<std::byte> whole = frame_bytes(header, body);
  std::fill(body.begin() + 10, body.end(), std::byte{0});  // not produced yet
  ASSERT_FALSE(channel_->send_ahead(header, body, 10));
  std::vector<std::byte> received(kHeaderBytes + 10);
  asio::read(peer_, asio::buffer(received));  // before more is produced
  EXPECT_TRUE(std::ranges::equal(received, std::span(whole).first(received.size())));
  std::fill(body.begin() + 10, body.begin() + 60, std::byte{5});
  ASSERT_FALSE(channel_->send_ahead(header, body, 60));
  ASSERT_FALSE(channel_->send_ahead(header, body, 60));
  std::fill(body.begin() + 60, body.end(), std::byte{5});
  ASSERT_FALSE(channel_->send(header, body, patience()));
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kGoodbye}, {}, patience()));
  received.resize(100 - 10 + kHeaderBytes);
  asio::read(peer_, asio::buffer(received));
  std::vector<std::byte> rest(whole.begin() + kHeaderBytes + 10, whole.end());
  const std::vector<std::byte> next = frame_bytes({.kind = FrameKind::kGoodbye}, {});
  rest.insert(rest.end(), next.begin(), next.end());
  EXPECT_EQ(received, rest);
}

TEST_F(ChannelTest, DoesNotWaitForAPeerThatDoesNotReadWhatIsAhead) {
  const std::vector<std::byte> body(std::size_t{64} << 20U, std::byte{5});
  const FrameHeader header{.kind = FrameKind::kPushPull};
  ASSERT_FALSE(channel_->send_ahead(header, body, body.size()));
  ASSERT_FALSE(channel_->send_ahead(header, body, body.size()));
  std::future<std::vector<std::byte>> reader = std::async(std::launch::async, [&] {
    std::vector<std::byte> received(kHeaderBytes + body.size());
    asio::read(peer_, asio::buffer(received));
    return received;
  });
  EXPECT_FALSE(channel_->send(header, body, patience()));
  EXPECT_EQ(reader.get(), frame_bytes(header, body));
}

TEST_F(ChannelTest, ReceivesABodyInParts) {
  const std::vector<std::byte> body{std::byte{1}, std::byte{2}, std::byte{3}};
  peer_writes(frame_bytes({.kind = FrameKind::kParameters}, body));
  ASSERT_FALSE(channel_->receive_header(header_, patience()));
  std::vector<std::byte> received(3);
  EXPECT_FALSE(channel_->receive_body(std::span(received).first(1), patience()));
  EXPECT_FALSE(channel_->receive_body(std::span(received).subspan(1), patience()));
  EXPECT_EQ(received, body);
}

TEST_F(ChannelTest, DeadlineEndsAReceive) {
  EXPECT_EQ(channel_->receive_header(header_, after(5ms)), std::errc::timed_out);
  EXPECT_FALSE(channel_->is_open());
}

TEST_F(ChannelTest, DeadlineEndsASendWithoutAReader) {
  const std::vector<std::byte> body(std::size_t{64} << 20U);
  EXPECT_EQ(channel_->send({.kind = FrameKind::kPushPull}, body, after(20ms)),
            std::errc::timed_out);
}

TEST_F(ChannelTest, InterruptEndsAReceive) {
  std::thread other([this] { interrupt_.interrupt(); });
  EXPECT_EQ(channel_->receive_header(header_, patience()), std::errc::operation_canceled);
  other.join();
}

TEST_F(ChannelTest, ReportsAPeerThatClosesInMidBody) {
  const std::vector<std::byte> frame =
      frame_bytes({.kind = FrameKind::kParameters}, std::vector<std::byte>(100));
  peer_writes(std::span(frame).first(kHeaderBytes + 10));
  peer_.close();
  ASSERT_FALSE(channel_->receive_header(header_, patience()));
  std::vector<std::byte> body(100);
  EXPECT_EQ(channel_->receive_body(body, patience()), asio::error::eof);
  EXPECT_FALSE(channel_->is_open());
}

TEST_F(ChannelTest, ClosesOnABadHeader) {
  peer_writes(std::vector<std::byte>(kHeaderBytes, std::byte{'x'}));
  EXPECT_EQ(channel_->receive_header(header_, patience()), WireError::kBadMagic);
  EXPECT_FALSE(channel_->is_open());
}

TEST_F(ChannelTest, RefusesToSendOnceClosed) {
  channel_->close();
  EXPECT_EQ(channel_->send({}, {}, patience()), asio::error::not_connected);
  EXPECT_EQ(channel_->send_ahead({}, {}, 0), asio::error::not_connected);
}

TEST_F(ChannelTest, ConnectsToLocalhostByName) {
  std::error_code error;
  EXPECT_TRUE(connect_tcp({"localhost", port()}, interrupt_, patience(), error)) << error.message();
}

TEST_F(ChannelTest, ReportsARefusedConnection) {
  const std::uint16_t closed_port = port();
  acceptor_.close();
  std::error_code error;
  EXPECT_FALSE(connect_tcp({"127.0.0.1", closed_port}, interrupt_, patience(), error));
  EXPECT_EQ(error, std::errc::connection_refused);
}

TEST(ReceiveRefusal, HasASentenceEvenWhenThePeersIsTooLong) {
  asio::io_context context;
  auto acceptor = listen_on(context, 0, ListenScope::kLoopback);
  const Interrupt interrupt;
  std::error_code error;
  const auto channel =
      connect_tcp({"127.0.0.1", acceptor.local_endpoint().port()}, interrupt, patience(), error);
  ASSERT_TRUE(channel);
  const FrameHeader header{.kind = FrameKind::kRefused, .body_size = kMaxControlBodyBytes + 1};
  EXPECT_FALSE(receive_refusal(*channel, header, patience()).sentence.empty());
}

// Of a peer that sends so many bytes and then closes. Records how much memory was asked for.
class SparingChannel final : public Channel {
 public:
  explicit SparingChannel(std::size_t sent) : left_(sent) {}
  [[nodiscard]] std::error_code send(FrameHeader /*header*/, std::span<const std::byte> /*body*/,
                                     Deadline /*deadline*/) override {
    return {};
  }
  [[nodiscard]] std::error_code receive_header(FrameHeader& /*header*/,
                                               Deadline /*deadline*/) override {
    return {};
  }
  [[nodiscard]] std::error_code receive_body(std::span<std::byte> body,
                                             Deadline /*deadline*/) override {
    most_ = std::max(most_, body.size());
    if (body.size() > left_) return asio::error::make_error_code(asio::error::eof);
    left_ -= body.size();
    std::ranges::fill(body, std::byte{'x'});
    return {};
  }
  void close() noexcept override {}
  [[nodiscard]] bool is_open() const noexcept override { return true; }
  [[nodiscard]] int fd() noexcept override { return -1; }

  [[nodiscard]] std::size_t most() const noexcept { return most_; }

 private:
  std::size_t left_;
  std::size_t most_ = 0;
};

TEST(ReceiveText, TakesMemoryAsTheBytesArrive) {
  constexpr std::size_t kSent = 100'000;
  SparingChannel channel(kSent);
  std::string text;
  EXPECT_TRUE(receive_text(channel, kMaxConfigBodyBytes, patience(), text));
  EXPECT_LE(channel.most(), kSent);
  EXPECT_LE(text.size(), 2 * kSent);
}

TEST(ReceiveText, ReceivesAllOfIt) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, kMaxControlBodyBytes, 5 * kMaxControlBodyBytes + 3}) {
    SparingChannel channel(size);
    std::string text = "what was here before";
    EXPECT_FALSE(receive_text(channel, size, patience(), text));
    EXPECT_EQ(text, std::string(size, 'x'));
  }
}

class OpenChannel : public ::testing::Test {
 protected:
  // Opens a channel to a peer that answers with these bytes.
  OpenedChannel answered(const std::vector<std::byte>& answer) {
    auto opened = std::async(std::launch::async, [&] {
      return open_channel(address_, hello_of_worker_1(), interrupt_, patience());
    });
    auto peer = acceptor_.accept();
    asio::write(peer, asio::buffer(answer));
    return opened.get();
  }

  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_ = listen_on(context_, 0, ListenScope::kLoopback);
  const Address address_{"127.0.0.1", acceptor_.local_endpoint().port()};
  const Interrupt interrupt_;
};

TEST_F(OpenChannel, RejectsAnAnswerThatIsNoAnswer) {
  EXPECT_EQ(answered(frame_bytes({.kind = FrameKind::kAck}, {})).error, WireError::kUnexpected);
}

TEST_F(OpenChannel, IsRefusedByAPeerOfAnotherWireVersion) {
  std::vector<std::byte> answer = frame_bytes({.kind = FrameKind::kRefused}, {});
  answer[4] = std::byte{kWireVersion - 1};  // where every version has its number
  const OpenedChannel refused = answered(answer);
  EXPECT_EQ(refused.error, WireError::kRefused);
  EXPECT_EQ(refused.refusal.exit_code, kExitMisconfigured);
  EXPECT_EQ(refused.refusal.sentence, to_string(address_) + " speaks another wire version than " +
                                          std::to_string(kWireVersion) +
                                          ": run the same release of disttf everywhere");
}

TEST_F(OpenChannel, RejectsAWelcomeOfTheWrongSize) {
  const std::vector<std::byte> body(kBodyBytes<Welcome> + 1);
  EXPECT_EQ(answered(frame_bytes({.kind = FrameKind::kWelcome}, body)).error, WireError::kBadBody);
}

TEST(Resolve, NeedsNoResolverForLocalhost) {
  Interrupt interrupt;
  interrupt.interrupt();  // has no effect, because nothing waits
  std::error_code error;
  const auto endpoints = resolve({"localhost", 80}, interrupt, after(0ms), error);
  ASSERT_EQ(endpoints.size(), 2U);
  EXPECT_EQ(endpoints[0].address().to_string(), "127.0.0.1");
  EXPECT_EQ(endpoints[1].address().to_string(), "::1");
}

TEST(Resolve, NeedsNoResolverForANumber) {
  Interrupt interrupt;
  interrupt.interrupt();
  std::error_code error;
  const auto endpoints = resolve({"::1", 80}, interrupt, after(0ms), error);
  ASSERT_EQ(endpoints.size(), 1U);
  EXPECT_EQ(endpoints[0].address().to_string(), "::1");
}

TEST(Resolve, InterruptDoesNotWaitForTheResolver) {
  Interrupt interrupt;
  interrupt.interrupt();
  std::error_code error;
  EXPECT_TRUE(resolve({"no-such-host.invalid", 80}, interrupt, patience(), error).empty());
  EXPECT_TRUE(error);
}

}  // namespace
}  // namespace disttf::net
