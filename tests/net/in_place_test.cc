// A trainer's channel and a ps's connection that have agreed to read tensors in place.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "net/memory/handover.h"
#include "net/memory/parameter_memory.h"
#include "net/tcp/gradient_memory.h"
#include "net/wire/messages.h"
#include "tests/net/in_place_fixture.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;

TEST_F(InPlaceTest, GradientIsReadWhereItLiesAndSoAreParameters) {
  connect();
  EXPECT_FALSE(channel_->is_in_place());
  agree();
  ASSERT_TRUE(channel_->is_in_place());
  const auto part = gradient_->gradient().subspan(kPageBytes);
  part.front() = std::byte{5};
  push(part);
  EXPECT_TRUE(happened_.wait_for("in place 5904 bytes, flags 0"));
  EXPECT_TRUE(happened_.wait_for("first byte 5")) << "read_body() reads it in place";
  await_answer();
  EXPECT_FALSE(is_ready()) << "the socket is not used";
  expect_parameters(/*in_place=*/true);
  EXPECT_FALSE(channel_->has_frame()) << "an answer is received only once";
}

TEST_F(InPlaceTest, AParkedPeerIsWoken) {
  connect();
  agree();
  gradient_->set_parked(true);
  push(gradient_->gradient());
  ASSERT_FALSE(wait_for(channel_->fd(), POLLIN, interrupt_, patience()));
  ASSERT_TRUE(channel_->has_frame());
  expect_parameters(/*in_place=*/true);
  agree();  // with the heartbeat that carried the wake
  EXPECT_TRUE(channel_->is_in_place());
}

// Elastic: a trainer pushes work that others have not done when the answer to its pull is already
// there.
TEST_F(InPlaceTest, APushThatIsNotAnsweredLeavesTheAnswerToAnotherFrameToBeSeen) {
  connect();
  agree();
  push(gradient_->gradient());
  await_answer();
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 5}, {}, patience()));
  ASSERT_TRUE(channel_->has_frame());
  expect_parameters(/*in_place=*/true);
}

TEST_F(InPlaceTest, EachOfSeveralGradientsIsReadWhereItLies) {
  gradient_ = GradientMemory::create({.bytes = kGradient, .count = 3});
  terms_.most = GradientMemory::largest({.bytes = kGradient, .count = 3});
  connect();
  agree();
  ASSERT_TRUE(channel_->is_in_place());
  for (int number = 0; number < 3; ++number) {
    const auto gradient = gradient_->gradient(static_cast<std::size_t>(number));
    ASSERT_EQ(gradient.size(), kGradient);
    gradient.front() = static_cast<std::byte>(number);
    push(gradient);
    EXPECT_TRUE(happened_.wait_for("first byte " + std::to_string(number)));
    await_answer();
    expect_parameters(/*in_place=*/true);
  }
}

// A ps that was suspended may read a gradient long after the trainer has given up on it.
TEST_F(InPlaceTest, WhoWasHandedMemoryKeepsItAsItIsWhenAnotherTakesItsPlace) {
  connect();
  agree();
  const auto second_page = [this] { return gradient_->gradient().subspan(kPageBytes, kPageBytes); };
  second_page().front() = std::byte{5};
  ASSERT_TRUE(gradient_->renew());
  second_page().front() = std::byte{6};
  const FrameHeader late{.kind = FrameKind::kPushPull,
                         .flags = kFlagInPlace,
                         .request_id = 4,
                         .body_size = kPageBytes,
                         .body_offset = kPageBytes};
  ASSERT_FALSE(channel_->send(late, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("first byte 5")) << "in the old memory";
  ASSERT_FALSE(wait_for(channel_->fd(), POLLIN, interrupt_, patience())) << "the trainer is woken";
  expect_parameters(/*in_place=*/true);
  push(second_page());
  EXPECT_TRUE(happened_.wait_for("sent 4096 bytes")) << "the ps does not have the new memory";
  await_answer();
  expect_parameters(/*in_place=*/true);
  agree();
  second_page().front() = std::byte{7};
  push(second_page());
  EXPECT_TRUE(happened_.wait_for("first byte 7"));
  await_answer();
  EXPECT_FALSE(is_ready()) << "the trainer is awake";
  expect_parameters(/*in_place=*/true);
}

TEST_F(InPlaceTest, ABodyThatLiesElsewhereIsSent) {
  connect();
  agree();
  push(std::vector<std::byte>(100, std::byte{6}));
  EXPECT_TRUE(happened_.wait_for("sent 100 bytes"));
  EXPECT_TRUE(happened_.wait_for("first byte 6"));
}

TEST_F(InPlaceTest, BeforeTheyAgreeAllIsSent) {
  connect();
  push(gradient_->gradient());
  EXPECT_TRUE(happened_.wait_for("sent 10000 bytes"));
  expect_parameters(/*in_place=*/false);
}

TEST_F(InPlaceTest, APsWithoutMemoryDeclines) {
  terms_.memory = nullptr;
  connect();
  agree();
  EXPECT_FALSE(channel_->is_in_place());
  EXPECT_FALSE(channel_->has_frame());
  push(gradient_->gradient());
  EXPECT_TRUE(happened_.wait_for("sent 10000 bytes"));
  expect_parameters(/*in_place=*/false);
}

TEST_F(InPlaceTest, MemoryOfAnUnneededSizeIsNotMapped) {
  terms_.least = kGradient + kPageBytes;
  connect();
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "too little";
  server_->ask([this](Listener&) {
    terms_.least = 1;
    terms_.most = kGradient - 1;
    return 0;
  });
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "too much";
}

TEST_F(InPlaceTest, ATrainerDoesNotMapMoreThanItNeeds) {
  connect();
  ASSERT_FALSE(channel_->agree(kParameters, patience()));
  EXPECT_FALSE(channel_->is_in_place());
}

// A trainer without the memory to map the ps's parameters: the ps must send its answers in frames.
TEST_F(InPlaceTest, ATrainerThatCannotMapHasItsAnswersInFrames) {
  connect();
  ASSERT_FALSE(channel_->agree(kParameters, patience()));
  ASSERT_FALSE(channel_->is_in_place());
  push(std::vector<std::byte>(kGradient, std::byte{5}));
  expect_parameters(false);
}

TEST_F(InPlaceTest, MemoryThatThePsHasNoMoreIsNotKeptForTheTrainer) {
  connect();
  agree();
  server_->ask([this](Listener&) {
    terms_.memory = ParameterMemory::create(kParameters, 2);
    return 0;
  });
  push(gradient_->gradient());
  expect_parameters(/*in_place=*/false);
  agree();
  push(gradient_->gradient());
  await_answer();
  expect_parameters(/*in_place=*/true);
}

TEST_F(InPlaceTest, ABodyInPlaceOverAConnectionThatHasAgreedOnNothingClosesIt) {
  connect();
  const FrameHeader header{.kind = FrameKind::kPushPull,
                           .flags = kFlagInPlace,
                           .request_id = 4,
                           .body_size = kPageBytes};
  ASSERT_FALSE(channel_->send(header, {}, patience()));
  FrameHeader answer;
  EXPECT_TRUE(channel_->receive_header(answer, patience())) << "a frame such as a refusal arrived";
}

TEST_F(InPlaceTest, APlaceThatIsNotInTheMemoryIsRefused) {
  connect();
  agree();
  const FrameHeader behind{.kind = FrameKind::kPushPull,
                           .flags = kFlagInPlace,
                           .request_id = 4,
                           .body_size = kPageBytes,
                           .body_offset = std::uint64_t{0} - kPageBytes};
  ASSERT_FALSE(channel_->send(behind, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("refused: a gradient in memory that is not shared"));
}

// A ps that claims to have handed its memory over but has not, or has handed over other memory; the
// trainer reports that.
TEST_F(InPlaceTest, ATrainerReadsNothingThatWasNotHandedOver) {
  std::error_code failed;
  const auto memory = SharedMemory::create(kPageBytes, failed);
  ASSERT_TRUE(memory);
  int handed = -1;
  server_ = std::make_unique<LiveServer>([&](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    while (!co_await connection->read_header(header, 0ms)) {
      std::vector<std::byte> body(header.body_size);
      SharedOffer offer;
      if (co_await connection->read_body(body, 1s) || decode(body, offer)) co_return;
      if (offer.size == 0) {
        happened_.add("not taken");
        connection->send(SharedFrame{header.request_id}.to_header());
        continue;
      }
      std::error_code error;
      const Descriptor peer = connect_to_peer_listener(offer.listener_name, error);
      if (handed >= 0 && !error) error = hand_over(peer, offer.token, handed);
      connection->send(SharedFrame{header.request_id}.to_header(),
                       encode(SharedOffer{.token = 1, .size = 2 * kPageBytes}));
    }
  });
  open();
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "nothing";
  EXPECT_TRUE(happened_.wait_for("not taken"));
  handed = memory->descriptor();
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "of another size";
}

TEST_F(InPlaceTest, AFrameThatComesInsteadOfAnAnswerIsKept) {
  server_ = std::make_unique<LiveServer>([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    if (!co_await connection->read_header(header, 0ms)) {
      connection->refuse({.exit_code = 3, .sentence = "no"}, header.request_id);
    }
  });
  open();
  agree();
  EXPECT_FALSE(channel_->is_in_place());
  ASSERT_TRUE(channel_->has_frame());
  FrameHeader header;
  ASSERT_FALSE(channel_->receive_header(header, patience()));
  EXPECT_EQ(header.kind, FrameKind::kRefused);
  EXPECT_EQ(receive_refusal(*channel_, header, patience()).sentence, "no");
}

// ---- Questions ----

// A ps that answers each frame as given, and a trainer that asks it.
class AskTest : public InPlaceTest {
 protected:
  using Answers = std::function<std::vector<FrameHeader>(const FrameHeader& question)>;

  void connect_to(Answers answers) {
    server_ = std::make_unique<LiveServer>(
        [answers = std::move(answers)](Connection connection) -> asio::awaitable<void> {
          FrameHeader header;
          while (!co_await connection->read_header(header, 0ms)) {
            for (const FrameHeader& answer : answers(header)) {
              const std::vector<std::byte> body(answer.body_size);
              connection->send(answer, body);
            }
          }
        });
    open();
  }
  std::error_code ask() {
    return channel_->ask(PeerDiscovery{.listener_name = 5}.to_header(), answer_, patience());
  }
  // Returns the answer that a ps would give: the numbers one higher.
  static FrameHeader answer_to(const FrameHeader& question) {
    return PeerDiscovery{
        .request_id = question.request_id, .listener_name = question.step + 1, .token = 7}
        .to_header();
  }

  std::optional<FrameHeader> answer_ = FrameHeader{};
};

TEST_F(AskTest, IsAnsweredByTheNumberThatTheChannelGave) {
  connect_to([](const FrameHeader& question) { return std::vector{answer_to(question)}; });
  std::uint64_t last = 0;
  for (int time = 0; time < 2; ++time) {
    ASSERT_FALSE(ask());
    ASSERT_TRUE(answer_);
    PeerDiscovery discovery;
    ASSERT_FALSE(discovery.from_header(*answer_));
    EXPECT_EQ(discovery.listener_name, 6U);
    EXPECT_EQ(discovery.token, 7U);
    EXPECT_NE(discovery.request_id, last) << "each question has its own number";
    last = discovery.request_id;
  }
  EXPECT_FALSE(channel_->has_frame());
}

// Before the question, a ps may have sent a heartbeat, or work that another trainer has done by
// now.
TEST_F(AskTest, WhatAPsSaysOfItselfIsPassedOver) {
  connect_to([](const FrameHeader& question) {
    return std::vector{Heartbeat{}.to_header(), Work{.micro_batch = 1}.to_header(),
                       Heartbeat{}.to_header(), answer_to(question)};
  });
  ASSERT_FALSE(ask());
  ASSERT_TRUE(answer_);
  EXPECT_EQ(answer_->sequence, 7U);
  EXPECT_FALSE(channel_->has_frame());
}

TEST_F(AskTest, AnotherFrameIsKept) {
  connect_to([](const FrameHeader&) { return std::vector{Fenced{3}.to_header()}; });
  ASSERT_FALSE(ask());
  EXPECT_FALSE(answer_) << "no answer arrived";
  ASSERT_TRUE(channel_->has_frame());
  FrameHeader header;
  ASSERT_FALSE(channel_->receive_header(header, patience()));
  EXPECT_EQ(header, Fenced{3}.to_header());
}

TEST_F(AskTest, AnAnswerToAnotherQuestionEndsTheChannel) {
  connect_to([](const FrameHeader& question) {
    FrameHeader answer = answer_to(question);
    ++answer.request_id;
    return std::vector{answer};
  });
  EXPECT_EQ(ask(), WireError::kUnexpected);
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(ask()) << "it is closed";
}

TEST_F(AskTest, AnAnswerWithABodyEndsTheChannel) {
  connect_to([](const FrameHeader& question) {
    FrameHeader answer = answer_to(question);
    answer.body_size = 8;
    return std::vector{answer};
  });
  EXPECT_EQ(ask(), WireError::kUnexpected);
  EXPECT_FALSE(answer_);
  EXPECT_TRUE(ask()) << "it is closed";
}

TEST_F(AskTest, APsThatHangsUpHasNotAnswered) {
  server_ = std::make_unique<LiveServer>([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    static_cast<void>(co_await connection->read_header(header, 0ms));
  });
  open();
  EXPECT_TRUE(ask());
  EXPECT_FALSE(answer_);
}

// Neighbours meet in memory, so a channel without memory has nothing to ask.
TEST_F(AskTest, AChannelWithoutMemoryAsksNothing) {
  connect_to([](const FrameHeader& question) { return std::vector{answer_to(question)}; });
  OpenedChannel plain =
      open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
  ASSERT_TRUE(plain.channel);
  EXPECT_EQ(plain.channel->ask(PeerDiscovery{}.to_header(), answer_, patience()),
            std::make_error_code(std::errc::not_supported));
  EXPECT_FALSE(answer_);
}

}  // namespace
}  // namespace disttf::net
