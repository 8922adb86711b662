#include "net/tcp/faulty_channel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "net/tcp/sockets.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

constexpr std::array kAllFaults = {
    FrameFault::kLost,    FrameFault::kCut,   FrameFault::kUnconfirmed, FrameFault::kOvertaken,
    FrameFault::kDelayed, FrameFault::kTwice, FrameFault::kAgainLater};

// SplitMix64 over the arguments, which is as good as math/'s generator here.
std::uint64_t mixed(std::uint64_t seed, std::uint32_t purpose, std::uint64_t stream,
                    std::uint64_t index) {
  std::uint64_t value = seed;
  for (const std::uint64_t next : {std::uint64_t{purpose}, stream, index}) {
    value += next + 0x9E3779B97F4A7C15U;
    value = (value ^ (value >> 30U)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27U)) * 0x94D049BB133111EBU;
    value ^= value >> 31U;
  }
  return value;
}

FaultOptions options_with(std::uint64_t seed, std::uint32_t per_1000) {
  return {.seed = seed, .per_1000 = per_1000, .random_bits = &mixed, .longest_delay = 1ms};
}

// The faults of the first requests and their replies; later ones have none.
struct Script {
  std::vector<FrameFault> requests;
  std::vector<FrameFault> replies = {};
};

// Finds the first seed (at rate `per_1000`) that produces the script and then no fault for `spared`
// exchanges.
FaultOptions options_for(const Script& script, std::size_t spared = 9,
                         std::uint32_t per_1000 = 50) {
  const auto planned = [](const std::vector<FrameFault>& faults, std::size_t number) {
    return number < faults.size() ? faults[number] : FrameFault::kNone;
  };
  const std::size_t count = std::max(script.requests.size(), script.replies.size()) + spared;
  FaultOptions options = options_with(0, per_1000);
  const auto fits = [&] {
    for (std::size_t number = 0; number < count; ++number) {
      if (fate_of_request(options, number).fault != planned(script.requests, number) ||
          fate_of_reply(options, number).fault != planned(script.replies, number)) {
        return false;
      }
    }
    return true;
  };
  while (!fits()) {
    ++options.seed;
  }
  return options;
}

// ------------------------------------------------------------------------- the choice of faults

TEST(FrameFate, SameSeedSameFaults) {
  const FaultOptions first = options_with(7, 100);
  const FaultOptions second = options_with(7, 100);
  for (std::uint64_t number = 0; number < 1000; ++number) {
    EXPECT_EQ(fate_of_request(first, number).fault, fate_of_request(second, number).fault);
    EXPECT_EQ(fate_of_request(first, number).amount, fate_of_request(second, number).amount);
    EXPECT_EQ(fate_of_reply(first, number).fault, fate_of_reply(second, number).fault);
  }
}

TEST(FrameFate, AnotherSeedOrStreamOtherFaults) {
  const auto faults = [](const FaultOptions& options) {
    std::vector<FrameFault> found;
    for (std::uint64_t number = 0; number < 100; ++number) {
      found.push_back(fate_of_request(options, number).fault);
      found.push_back(fate_of_reply(options, number).fault);
    }
    return found;
  };
  FaultOptions other_stream = options_with(7, 200);
  other_stream.stream = 1;
  EXPECT_NE(faults(options_with(7, 200)), faults(options_with(8, 200)));
  EXPECT_NE(faults(options_with(7, 200)), faults(other_stream));
}

TEST(FrameFate, RateIsFaultsIn1000Frames) {
  const auto count = [](std::uint32_t per_1000) {
    const FaultOptions options = options_with(7, per_1000);
    std::size_t faults = 0;
    for (std::uint64_t number = 0; number < 10'000; ++number) {
      faults += fate_of_request(options, number).fault != FrameFault::kNone ? 1U : 0U;
      faults += fate_of_reply(options, number).fault != FrameFault::kNone ? 1U : 0U;
    }
    return faults;
  };
  EXPECT_EQ(count(0), 0U);
  EXPECT_NEAR(static_cast<double>(count(50)), 1000, 150);  // of 20 000; 5 standard deviations
  EXPECT_EQ(count(1000), 20'000U);
}

TEST(FrameFate, EveryFaultOccurs) {
  for (const FrameFault fault : kAllFaults) {
    EXPECT_EQ(fate_of_request(options_for({.requests = {fault}}), 0).fault, fault);
  }
  for (const FrameFault fault : {FrameFault::kLost, FrameFault::kCut, FrameFault::kDelayed}) {
    EXPECT_EQ(fate_of_reply(options_for({.requests = {}, .replies = {fault}}), 0).fault, fault);
  }
}

// ----------------------------------------------------------------------- the effect of faults

// Channels under one injector; their peer is a bare socket that the test controls.
class FaultyChannelTest : public ::testing::Test {
 protected:
  FaultyChannelTest()
      : acceptor_(listen_on(context_, 0, ListenScope::kLoopback)), peer_(context_) {}

  void use(const Script& script) {
    options_ = options_for(script);
    options_.log = [this](const std::string& text) { log_ += text + "\n"; };
    injector_.emplace(options_);
    connect();
  }
  void connect() {
    std::error_code error;
    auto channel = connect_tcp({"127.0.0.1", acceptor_.local_endpoint().port()}, interrupt_,
                               patience(), error);
    ASSERT_TRUE(channel) << error.message();
    peer_ = acceptor_.accept();
    channel_ = injector_->wrap(std::move(channel), interrupt_);
  }
  std::error_code send(FrameKind kind, std::uint64_t request_id) {
    return channel_->send({.kind = kind, .request_id = request_id}, body_, patience());
  }
  // Returns the bytes of send(kind, request_id) on the wire.
  [[nodiscard]] std::vector<std::byte> sent(FrameKind kind, std::uint64_t request_id) const {
    return frame_bytes({.kind = kind, .request_id = request_id}, body_);
  }
  // Reads as many bytes as the frames have and compares them.
  ::testing::AssertionResult peer_receives(const std::vector<std::vector<std::byte>>& frames) {
    std::vector<std::byte> expected;
    for (const auto& frame : frames) {
      expected.insert(expected.end(), frame.begin(), frame.end());
    }
    std::vector<std::byte> received(expected.size());
    std::error_code error;
    asio::read(peer_, asio::buffer(received), error);
    return !error && received == expected ? ::testing::AssertionSuccess()
                                          : ::testing::AssertionFailure() << error.message();
  }
  std::vector<std::byte> rest_of_connection() {
    std::vector<std::byte> bytes;
    std::error_code end;
    asio::read(peer_, asio::dynamic_buffer(bytes), end);
    EXPECT_EQ(end, asio::error::eof);
    return bytes;
  }
  void peer_writes(std::span<const std::byte> bytes) {
    asio::write(peer_, asio::buffer(bytes.data(), bytes.size()));
  }

  Interrupt interrupt_;
  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_;
  asio::ip::tcp::socket peer_;
  FaultOptions options_;
  std::optional<FaultInjector> injector_;
  std::unique_ptr<Channel> channel_;
  const std::vector<std::byte> body_ = std::vector<std::byte>(1000, std::byte{5});
  FrameHeader header_;
  std::string log_;
};

TEST_F(FaultyChannelTest, LeavesOthersAlone) {
  use({.requests = {}});
  EXPECT_FALSE(send(FrameKind::kPushPull, 1));
  EXPECT_TRUE(peer_receives({sent(FrameKind::kPushPull, 1)}));
  peer_writes(frame_bytes({.kind = FrameKind::kParameters, .request_id = 1}, body_));
  EXPECT_FALSE(channel_->receive_header(header_, patience()));
  std::vector<std::byte> received(body_.size());
  EXPECT_FALSE(channel_->receive_body(received, patience()));
  EXPECT_EQ(received, body_);
  EXPECT_EQ(log_, "");
}

TEST_F(FaultyChannelTest, LosesARequest) {
  use({.requests = {FrameFault::kLost}});
  EXPECT_EQ(send(FrameKind::kPushPull, 1), asio::error::connection_reset);
  EXPECT_FALSE(channel_->is_open());
  EXPECT_TRUE(rest_of_connection().empty());
  EXPECT_EQ(log_, "frame 0 (kind 9, step 0) is lost\n");
}

TEST_F(FaultyChannelTest, CutsARequest) {
  use({.requests = {FrameFault::kCut}});
  EXPECT_EQ(send(FrameKind::kPushPull, 1), asio::error::connection_reset);
  EXPECT_FALSE(channel_->is_open());
  std::vector<std::byte> expected = sent(FrameKind::kPushPull, 1);
  expected.resize(fate_of_request(options_, 0).amount % expected.size());
  EXPECT_EQ(rest_of_connection(), expected);
}

TEST_F(FaultyChannelTest, CutsAFrameThatTheSocketDoesNotTakeAtOnce) {
  use({.requests = {FrameFault::kCut}});
  const std::vector<std::byte> body(std::size_t{64} << 20U, std::byte{6});
  std::thread sender([&] {
    EXPECT_EQ(channel_->send({.kind = FrameKind::kPushPull}, body, patience()),
              asio::error::connection_reset);
  });
  const std::size_t received = rest_of_connection().size();
  sender.join();
  EXPECT_EQ(received, fate_of_request(options_, 0).amount % (kHeaderBytes + body.size()));
}

TEST_F(FaultyChannelTest, SaysThatASentRequestWasLost) {
  use({.requests = {FrameFault::kUnconfirmed}});
  EXPECT_EQ(send(FrameKind::kPushPull, 1), asio::error::connection_reset);
  EXPECT_FALSE(channel_->is_open());
  EXPECT_EQ(rest_of_connection(), sent(FrameKind::kPushPull, 1));
}

TEST_F(FaultyChannelTest, LetsARequestBeOvertakenOnTheNextConnection) {
  use({.requests = {FrameFault::kOvertaken}});
  EXPECT_EQ(send(FrameKind::kPushPull, 1), asio::error::connection_reset);
  EXPECT_TRUE(rest_of_connection().empty());
  connect();
  EXPECT_FALSE(send(FrameKind::kPushPull, 2));
  EXPECT_FALSE(send(FrameKind::kPushPull, 3));
  EXPECT_TRUE(peer_receives({sent(FrameKind::kPushPull, 2), sent(FrameKind::kPushPull, 1),
                             sent(FrameKind::kPushPull, 3)}));
}

TEST_F(FaultyChannelTest, DelaysARequestAndSendsIt) {
  use({.requests = {FrameFault::kDelayed}});
  EXPECT_FALSE(send(FrameKind::kPushPull, 1));
  EXPECT_TRUE(peer_receives({sent(FrameKind::kPushPull, 1)}));
  EXPECT_NE(log_.find("is delayed by"), std::string::npos);
}

TEST_F(FaultyChannelTest, InterruptEndsADelay) {
  options_ = options_for({.requests = {FrameFault::kDelayed}});
  options_.longest_delay = 24h;
  injector_.emplace(options_);
  connect();
  interrupt_.interrupt();
  EXPECT_FALSE(send(FrameKind::kPushPull, 1));  // does not wait for the socket
}

TEST_F(FaultyChannelTest, SendsARequestTwice) {
  use({.requests = {FrameFault::kTwice}});
  EXPECT_FALSE(send(FrameKind::kRestore, 1));
  EXPECT_FALSE(send(FrameKind::kPushPull, 2));
  EXPECT_TRUE(peer_receives(
      {sent(FrameKind::kRestore, 1), sent(FrameKind::kRestore, 1), sent(FrameKind::kPushPull, 2)}));
}

TEST_F(FaultyChannelTest, SendsARequestAgainBehindALaterOne) {
  use({.requests = {FrameFault::kAgainLater}});
  const std::uint32_t behind = 1 + fate_of_request(options_, 0).amount % 8;
  std::vector<std::vector<std::byte>> expected;
  for (std::uint64_t request = 1; request <= 1 + behind; ++request) {
    ASSERT_FALSE(send(FrameKind::kPull, request));
    expected.push_back(sent(FrameKind::kPull, request));
  }
  expected.push_back(sent(FrameKind::kPull, 1));
  EXPECT_TRUE(peer_receives(expected));
}

TEST_F(FaultyChannelTest, SendsItAgainOnANewConnection) {
  use({.requests = {FrameFault::kAgainLater}});
  const std::uint32_t behind = 1 + fate_of_request(options_, 0).amount % 8;
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  channel_->close();
  connect();
  std::vector<std::vector<std::byte>> expected;
  for (std::uint64_t request = 2; request <= 1 + behind; ++request) {
    ASSERT_FALSE(send(FrameKind::kPushPull, request));
    expected.push_back(sent(FrameKind::kPushPull, request));
  }
  expected.push_back(sent(FrameKind::kPushPull, 1));
  EXPECT_TRUE(peer_receives(expected));
}

// See FaultInjector::wrap().
TEST_F(FaultyChannelTest, LetsNothingComeLateThatSetsAState) {
  use({.requests = {FrameFault::kOvertaken, FrameFault::kAgainLater}});
  EXPECT_TRUE(send(FrameKind::kRestore, 1));
  connect();
  EXPECT_FALSE(send(FrameKind::kGoodbye, 2));
  EXPECT_FALSE(send(FrameKind::kPushPull, 3));
  EXPECT_TRUE(peer_receives(
      {sent(FrameKind::kGoodbye, 2), sent(FrameKind::kGoodbye, 2), sent(FrameKind::kPushPull, 3)}));
}

TEST_F(FaultyChannelTest, LosesAReply) {
  use({.requests = {}, .replies = {FrameFault::kLost}});
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  peer_writes(frame_bytes({.kind = FrameKind::kParameters, .request_id = 1}, body_));
  EXPECT_EQ(channel_->receive_header(header_, patience()), asio::error::eof);
  EXPECT_FALSE(channel_->is_open());
}

TEST_F(FaultyChannelTest, CutsAReplyThatIsReceivedInParts) {
  use({.requests = {}, .replies = {FrameFault::kCut}});
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  peer_writes(frame_bytes({.kind = FrameKind::kParameters, .request_id = 1}, body_));
  ASSERT_FALSE(channel_->receive_header(header_, patience()));
  std::size_t received = 0;
  std::byte part{0};
  while (!channel_->receive_body(std::span(&part, 1), patience())) {
    EXPECT_EQ(part, body_[received]);
    ++received;
  }
  EXPECT_EQ(received, fate_of_reply(options_, 0).amount % body_.size());
  EXPECT_FALSE(channel_->is_open());
}

TEST_F(FaultyChannelTest, DelaysAReply) {
  use({.requests = {}, .replies = {FrameFault::kDelayed}});
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  peer_writes(frame_bytes({.kind = FrameKind::kAck, .request_id = 1}, {}));
  EXPECT_FALSE(channel_->receive_header(header_, patience()));
  EXPECT_NE(log_.find("is a reply and delayed by"), std::string::npos);
}

TEST_F(FaultyChannelTest, CountsNoHeartbeats) {
  use({.requests = {}, .replies = {FrameFault::kLost}});
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  for (int beat = 0; beat < 3; ++beat) {
    peer_writes(frame_bytes({.kind = FrameKind::kHeartbeat, .request_id = 1}, {}));
    EXPECT_FALSE(channel_->receive_header(header_, patience()));
  }
  peer_writes(frame_bytes({.kind = FrameKind::kAck, .request_id = 1}, {}));
  EXPECT_EQ(channel_->receive_header(header_, patience()), asio::error::eof);
}

// A lost connection discards the fault of its reply.
TEST_F(FaultyChannelTest, SparesTheNextConnectionTheFaultOfAReplyThatNeverCame) {
  use({.requests = {}, .replies = {FrameFault::kLost}});
  ASSERT_FALSE(send(FrameKind::kPushPull, 1));
  channel_->close();
  connect();
  ASSERT_FALSE(send(FrameKind::kPushPull, 2));
  peer_writes(frame_bytes({.kind = FrameKind::kAck, .request_id = 2}, {}));
  EXPECT_FALSE(channel_->receive_header(header_, patience()));
}

}  // namespace
}  // namespace disttf::net
