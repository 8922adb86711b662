// A trainer's channel and a ps's connection that have agreed to read tensors where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport/gradient_memory.h"
#include "net/transport/handover.h"
#include "net/transport/header_slot.h"
#include "net/transport/parameter_memory.h"
#include "net/wire/messages.h"
#include "tests/net/test_server.h"

namespace disttf::net {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;

constexpr std::size_t kGradient = 10'000;   // bytes
constexpr std::size_t kParameters = 8'192;  // the same

class InPlaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    gradient_ = GradientMemory::create({.bytes = kGradient});
    terms_ = {.memory = ParameterMemory::create(kParameters, 2),
              .trainer = 1,
              .least = kGradient,
              .most = GradientMemory::largest({.bytes = kGradient})};
    ASSERT_TRUE(gradient_);
    ASSERT_TRUE(terms_.memory);
  }
  void TearDown() override {
    channel_.reset();
    server_.reset();
  }

  // A ps that answers a request, but for a PUSH, with the second page of its parameters; one
  // without a body with a body of its own.
  void connect() {
    server_ = std::make_unique<TestServer>([this](Connection connection) -> asio::awaitable<void> {
      connection->answer_offers([this] { return terms_; });
      FrameHeader header;
      while (!co_await connection->read_header(header, 0ms)) {
        record(header, connection->body_in_place());
        std::vector<std::byte> body(header.body_size);
        if (co_await connection->read_body(body, 1s)) co_return;
        happened_.add("first byte " + std::to_string(first_of(body)));
        if (header.kind == FrameKind::kPush || header.kind == FrameKind::kHeartbeat) continue;
        const FrameHeader answer{.kind = FrameKind::kParameters, .request_id = header.request_id};
        if (terms_.memory) {
          const auto page = terms_.memory->parameters().subspan(kPageBytes);
          std::ranges::fill(page, std::byte{9});
          connection->send_borrowed(answer, page, terms_.memory);
        } else {
          connection->send(answer, std::vector<std::byte>(kPageBytes, std::byte{9}));
        }
      }
      happened_.add("refused: " + connection->refused_with());
    });
    server_->start();
    open();
  }
  void open() {
    OpenedChannel opened =
        open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
    ASSERT_TRUE(opened.channel) << opened.error.message();
    channel_ = gradient_->carry(std::move(opened.channel), 0);
  }
  void agree() { ASSERT_FALSE(channel_->agree(kMost, patience())); }
  void push(std::span<const std::byte> body) {
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPushPull, .request_id = 4}, body, patience()));
  }
  // The ps is awake from now on; it looks only where it is told to.
  void awake() {
    server_->ask([this](Listener&) {
      terms_.memory->set_asleep(false);
      return 0;
    });
  }
  // Whether the ps finds a push in memory.
  bool look() {
    return server_->ask([this](Listener&) { return terms_.memory->look(); });
  }
  // Looks where answers appear until one does.
  void await_answer() {
    while (!channel_->has_frame()) std::this_thread::yield();
  }
  void expect_parameters(bool in_place) {
    FrameHeader header;
    ASSERT_FALSE(channel_->receive_header(header, patience()));
    EXPECT_EQ(
        header,
        (FrameHeader{.kind = FrameKind::kParameters, .request_id = 4, .body_size = kPageBytes}))
        << "as if it had come in a frame";
    const BodyPlace place = channel_->place_of_body();
    ASSERT_EQ(place.view != nullptr, in_place);
    if (in_place) {
      EXPECT_THAT(place.bytes(), Each(std::byte{9}));
    }
    std::vector<std::byte> body(header.body_size);
    ASSERT_FALSE(channel_->receive_body(body, patience()));
    EXPECT_THAT(body, Each(std::byte{9}));
  }
  [[nodiscard]] bool is_ready() {
    std::array<pollfd, 1> fds{pollfd{channel_->fd(), POLLIN, 0}};
    return ::poll(fds.data(), 1, 0) > 0;
  }

  static constexpr std::size_t kMost = 1U << 20U;

  Interrupt interrupt_;
  std::unique_ptr<GradientMemory> gradient_;
  InPlaceTerms terms_;
  Events happened_;  // outlives the server, whose thread adds to it
  std::unique_ptr<TestServer> server_;
  std::unique_ptr<Channel> channel_;

 private:
  static int first_of(std::span<const std::byte> body) {
    return body.empty() ? -1 : std::to_integer<int>(body.front());
  }
  void record(const FrameHeader& header, const BodyInPlace& body) {
    happened_.add((body.bytes.empty() ? "sent " : "in place ") + std::to_string(header.body_size) +
                  " bytes, flags " + std::to_string(header.flags));
  }
};

TEST_F(InPlaceTest, GradientIsReadWhereItLiesAndSoAreParameters) {
  connect();
  EXPECT_FALSE(channel_->is_in_place());
  agree();
  ASSERT_TRUE(channel_->is_in_place());
  const auto part = gradient_->gradient().subspan(kPageBytes);
  part.front() = std::byte{5};
  push(part);
  EXPECT_TRUE(happened_.wait_for("in place 5904 bytes, flags 0"));
  EXPECT_TRUE(happened_.wait_for("first byte 5")) << "read_body() takes it from there";
  await_answer();
  EXPECT_FALSE(is_ready()) << "nothing crosses the socket";
  expect_parameters(/*in_place=*/true);
  EXPECT_FALSE(channel_->has_frame()) << "it is received once";
}

TEST_F(InPlaceTest, WhoSleepsIsRung) {
  connect();
  agree();
  gradient_->set_asleep(true);
  push(gradient_->gradient());
  ASSERT_FALSE(wait_for(channel_->fd(), POLLIN, interrupt_, patience()));
  ASSERT_TRUE(channel_->has_frame());
  expect_parameters(/*in_place=*/true);
  agree();  // over the heartbeat that has rung
  EXPECT_TRUE(channel_->is_in_place());
}

// Elastic: a trainer pushes what others have not when the answer to its pull is there already.
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

// A ps that was frozen may come to read a gradient when the trainer has long given it up.
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
                         .place = kPageBytes};
  ASSERT_FALSE(channel_->send(late, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("first byte 5")) << "in the old memory";
  ASSERT_FALSE(wait_for(channel_->fd(), POLLIN, interrupt_, patience())) << "it is rung";
  expect_parameters(/*in_place=*/true);
  push(second_page());
  EXPECT_TRUE(happened_.wait_for("sent 4096 bytes")) << "of the new one it has not been told";
  await_answer();
  expect_parameters(/*in_place=*/true);
  agree();
  second_page().front() = std::byte{7};
  push(second_page());
  EXPECT_TRUE(happened_.wait_for("first byte 7"));
  await_answer();
  EXPECT_FALSE(is_ready()) << "awake";
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

TEST_F(InPlaceTest, MemoryOfASizeThatNobodyNeedsIsNotMapped) {
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

// The ps was given another configuration, say: what lies elsewhere now is sent.
// As one that lacks the memory to map it: the ps must not leave answers there.
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
  EXPECT_TRUE(channel_->receive_header(answer, patience())) << "a frame, say a refusal, came back";
}

TEST_F(InPlaceTest, APlaceThatIsNotInTheMemoryIsRefused) {
  connect();
  agree();
  const FrameHeader behind{.kind = FrameKind::kPushPull,
                           .flags = kFlagInPlace,
                           .request_id = 4,
                           .body_size = kPageBytes,
                           .place = std::uint64_t{0} - kPageBytes};
  ASSERT_FALSE(channel_->send(behind, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("refused: a gradient in memory that is not shared"));
}

// A ps that says it has handed its memory over, and has not, or not that; and that is told so.
TEST_F(InPlaceTest, ATrainerReadsNothingThatWasNotHandedOver) {
  std::error_code failed;
  const auto memory = SharedMemory::create(kPageBytes, failed);
  ASSERT_TRUE(memory);
  int handed = -1;
  server_ = std::make_unique<TestServer>([&](Connection connection) -> asio::awaitable<void> {
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
      const Descriptor peer = meet(offer.rendezvous, error);
      if (handed >= 0 && !error) error = hand_over(peer, offer.token, handed);
      connection->send(SharedFrame{header.request_id}.to_header(),
                       encode(SharedOffer{.token = 1, .size = 2 * kPageBytes}));
    }
  });
  server_->start();
  open();
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "nothing";
  EXPECT_TRUE(happened_.wait_for("not taken"));
  handed = memory->descriptor();
  agree();
  EXPECT_FALSE(channel_->is_in_place()) << "of another size";
}

TEST_F(InPlaceTest, AFrameThatComesInsteadOfAnAnswerIsKept) {
  server_ = std::make_unique<TestServer>([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    if (!co_await connection->read_header(header, 0ms)) {
      connection->refuse({.exit_code = 3, .sentence = "no"}, header.request_id);
    }
  });
  server_->start();
  open();
  agree();
  EXPECT_FALSE(channel_->is_in_place());
  ASSERT_TRUE(channel_->has_frame());
  FrameHeader header;
  ASSERT_FALSE(channel_->receive_header(header, patience()));
  EXPECT_EQ(header.kind, FrameKind::kRefused);
  EXPECT_EQ(receive_refusal(*channel_, header, patience()).sentence, "no");
}

// ---- pushes without a frame ----

TEST_F(InPlaceTest, APsThatIsAwakeFindsAPushInMemory) {
  connect();
  agree();
  awake();
  for (int number = 1; number <= 3; ++number) {
    gradient_->gradient().front() = static_cast<std::byte>(number);
    push(gradient_->gradient());
    EXPECT_TRUE(look());
    EXPECT_TRUE(happened_.wait_for("first byte " + std::to_string(number)));
    await_answer();
    expect_parameters(/*in_place=*/true);
    EXPECT_FALSE(look()) << "it is taken once";
  }
  EXPECT_EQ(happened_.count("in place 10000 bytes, flags 0"), 3);
}

TEST_F(InPlaceTest, APsThatSleepsIsSentAPush) {
  connect();
  agree();
  push(gradient_->gradient());
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  EXPECT_FALSE(look());
}

// It fell asleep when the trainer had seen it awake, and had looked before that left the push.
TEST_F(InPlaceTest, ARingLeadsToThePush) {
  connect();
  agree();
  awake();
  push(gradient_->gradient());
  ASSERT_FALSE(channel_->send(Heartbeat{}.to_header(), {}, patience()));
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  await_answer();
  expect_parameters(/*in_place=*/true);
}

// Its word changes all the time, and so mostly between two reads of it, too.
TEST_F(InPlaceTest, APsThatHasFallenAsleepMeanwhileIsRung) {
  connect();
  agree();
  std::atomic<bool> is_done = false;
  std::thread moody([&] {
    for (bool asleep = false; !is_done; asleep = !asleep) {
      terms_.memory->set_asleep(asleep);
    }
  });
  const Deadline until = patience();
  while (happened_.count("sent 0 bytes") == 0 && Clock::now() < until) {
    push(gradient_->gradient());
    look();  // for what was left and not rung for
    await_answer();
    expect_parameters(/*in_place=*/true);
  }
  is_done = true;
  moody.join();
  EXPECT_GT(happened_.count("sent 0 bytes"), 0) << "no ring";
}

// A trainer that waits for another ps says so, and expects that to come back.
TEST_F(InPlaceTest, AHeartbeatReachesWhoeverReads) {
  connect();
  agree();
  ASSERT_FALSE(channel_->send(Heartbeat{}.to_header(), {}, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 0 bytes, flags 0"));
}

// Elastic: pushes that have no answer, and a pull.
TEST_F(InPlaceTest, RequestsThatAreLeftBehindEachOtherAreReadInTheirOrder) {
  connect();
  agree();
  awake();
  for (int round = 0; round < 3; ++round) {
    for (const std::uint64_t id : {std::uint64_t{2}, std::uint64_t{3}}) {
      ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = id},
                                  gradient_->gradient(), patience()));
    }
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPull, .request_id = 4}, {}, patience()));
    EXPECT_TRUE(look());
    await_answer();
    EXPECT_EQ(happened_.count("in place 10000 bytes"), 2 * (round + 1)) << "before the answer";
    expect_parameters(/*in_place=*/true);
  }
  EXPECT_EQ(happened_.count("sent 0 bytes"), 3);
}

// What others have not made is dealt to one who waits: it pushes before its pull is answered.
TEST_F(InPlaceTest, ThereIsRoomAgainWhenAPullIsAnsweredThoughAPushFollowedIt) {
  connect();
  agree();
  awake();
  for (std::uint64_t round = 0; round < 20; ++round) {
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPull, .request_id = 4}, {}, patience()));
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 5}, gradient_->gradient(),
                                patience()));
    EXPECT_TRUE(look()) << "in memory, in round " << round;
    await_answer();
    expect_parameters(/*in_place=*/true);
  }
}

TEST_F(InPlaceTest, WhatASlotHasNoRoomForIsSent) {
  connect();
  agree();
  awake();
  const auto push_alone = [this](std::uint64_t id) {
    ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = id}, gradient_->gradient(),
                                patience()));
  };
  for (std::uint64_t id = 10; id < 10 + kHeadersInSlot + 1; ++id) {
    push_alone(id);
  }
  push(gradient_->gradient());  // behind a frame: another one
  await_answer();               // nobody has looked: the frames have led to all
  EXPECT_EQ(happened_.count("in place 10000 bytes"), std::ptrdiff_t{kHeadersInSlot} + 2);
  expect_parameters(/*in_place=*/true);
  push(gradient_->gradient());
  EXPECT_TRUE(look()) << "all is answered";
}

TEST_F(InPlaceTest, APushInMemoryComesBeforeAFrameThatIsSentBehindIt) {
  connect();
  agree();
  awake();
  push(gradient_->gradient());
  const std::vector<std::byte> body(100, std::byte{6});
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 5}, body, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 100 bytes"));
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 1) << "by then";
  EXPECT_TRUE(happened_.wait_for("first byte 6")) << "the body is still that frame's";
}

TEST_F(InPlaceTest, APushDoesNotOvertakeAFrameThatMayNotHaveBeenRead) {
  connect();
  agree();
  awake();
  const std::vector<std::byte> body(100, std::byte{6});
  ASSERT_FALSE(channel_->send({.kind = FrameKind::kPush, .request_id = 3}, body, patience()));
  push(gradient_->gradient());
  EXPECT_FALSE(look()) << "it is sent behind that";
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  await_answer();
  expect_parameters(/*in_place=*/true);
  push(gradient_->gradient());
  EXPECT_TRUE(look()) << "all is answered";
}

TEST_F(InPlaceTest, APushIsFoundThatWasLeftForMemoryThatThePsHasNoMore) {
  connect();
  agree();
  awake();
  push(gradient_->gradient());
  server_->ask([this](Listener&) {
    terms_.memory = ParameterMemory::create(kParameters, 2);
    return 0;
  });
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
  expect_parameters(/*in_place=*/false);
  push(gradient_->gradient());
  expect_parameters(/*in_place=*/false);
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 2) << "the other one is sent: nobody looks";
}

// The one before it may not have ended yet where the ps is.
TEST_F(InPlaceTest, APushIsFoundOverTheNewestChannelAlone) {
  connect();
  agree();
  const std::unique_ptr<Channel> before = std::move(channel_);
  open();
  agree();
  awake();
  push(gradient_->gradient());
  EXPECT_TRUE(look());
  EXPECT_FALSE(look());
  await_answer();
  expect_parameters(/*in_place=*/true);
  ASSERT_FALSE(before->send({.kind = FrameKind::kStatus, .request_id = 4}, {}, patience()));
  EXPECT_TRUE(happened_.wait_for("sent 0 bytes")) << "over the one before";
  EXPECT_EQ(happened_.count("in place 10000 bytes"), 1);
}

TEST_F(InPlaceTest, AChannelWithoutANumberSendsItsRequests) {
  connect();
  OpenedChannel opened =
      open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
  ASSERT_TRUE(opened.channel) << opened.error.message();
  channel_ = gradient_->carry(std::move(opened.channel), std::nullopt);
  agree();
  awake();
  push(gradient_->gradient());
  EXPECT_FALSE(look());
  EXPECT_TRUE(happened_.wait_for("in place 10000 bytes"));
}

// ---- questions ----

// A ps that answers each frame with these, and a trainer that asks it.
class AskTest : public InPlaceTest {
 protected:
  using Answers = std::function<std::vector<FrameHeader>(const FrameHeader& question)>;

  void connect_to(Answers answers) {
    server_ = std::make_unique<TestServer>(
        [answers = std::move(answers)](Connection connection) -> asio::awaitable<void> {
          FrameHeader header;
          while (!co_await connection->read_header(header, 0ms)) {
            for (const FrameHeader& answer : answers(header)) {
              const std::vector<std::byte> body(answer.body_size);
              connection->send(answer, body);
            }
          }
        });
    server_->start();
    open();
  }
  std::error_code ask() {
    return channel_->ask(Meet{.rendezvous = 5}.to_header(), answer_, patience());
  }
  // What it is answered with, were it by a ps: the numbers one higher.
  static FrameHeader answer_to(const FrameHeader& question) {
    return Meet{.request_id = question.request_id, .rendezvous = question.step + 1, .token = 7}
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
    Meet meet;
    ASSERT_FALSE(meet.from_header(*answer_));
    EXPECT_EQ(meet.rendezvous, 6U);
    EXPECT_EQ(meet.token, 7U);
    EXPECT_NE(meet.request_id, last) << "each question has its own";
    last = meet.request_id;
  }
  EXPECT_FALSE(channel_->has_frame());
}

// A ps may have said that it lives, or dealt work that another one has done, before it was asked.
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
  EXPECT_FALSE(answer_) << "it has not been answered";
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
  server_ = std::make_unique<TestServer>([](Connection connection) -> asio::awaitable<void> {
    FrameHeader header;
    static_cast<void>(co_await connection->read_header(header, 0ms));
  });
  server_->start();
  open();
  EXPECT_TRUE(ask());
  EXPECT_FALSE(answer_);
}

// Memory is what neighbours meet in.
TEST_F(AskTest, AChannelWithoutMemoryAsksNothing) {
  connect_to([](const FrameHeader& question) { return std::vector{answer_to(question)}; });
  OpenedChannel plain =
      open_channel(server_->address(), hello_of_worker_1(), interrupt_, patience());
  ASSERT_TRUE(plain.channel);
  EXPECT_EQ(plain.channel->ask(Meet{}.to_header(), answer_, patience()),
            std::make_error_code(std::errc::not_supported));
  EXPECT_FALSE(answer_);
}

}  // namespace
}  // namespace disttf::net
