// A trainer's channel, and a ps that has agreed to read tensors in place.
#pragma once

#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/memory/parameter_memory.h"
#include "net/tcp/gradient_memory.h"
#include "net/wire/frame.h"
#include "tests/net/test_server.h"

namespace disttf::net {

class InPlaceTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kGradient = 10'000;   // bytes
  static constexpr std::size_t kParameters = 8'192;  // bytes

  void SetUp() override {
    gradient_ = GradientMemory::create({.bytes = kGradient});
    terms_ = {.memory = ParameterMemory::create(kParameters, 2),
              .slot = 1,
              .least = kGradient,
              .most = GradientMemory::largest({.bytes = kGradient})};
    ASSERT_TRUE(gradient_);
    ASSERT_TRUE(terms_.memory);
  }
  void TearDown() override {
    channel_.reset();
    server_.reset();
  }

  // A ps that answers every request except a PUSH with the second page of its parameters; a request
  // without a body gets a body of the ps's own.
  void connect() {
    server_ = std::make_unique<LiveServer>([this](Connection connection) -> asio::awaitable<void> {
      connection->answer_offers([this] { return terms_; });
      FrameHeader header;
      while (!co_await connection->read_header(header, std::chrono::milliseconds(0))) {
        record(header, connection->body_in_place());
        std::vector<std::byte> body(header.body_size);
        if (co_await connection->read_body(body, std::chrono::seconds(1))) co_return;
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
  // Marks the ps awake from now on; it checks memory only when the test calls look().
  void awake() {
    server_->ask([this](Listener&) {
      terms_.memory->set_parked(false);
      return 0;
    });
  }
  void connect_to_one_awake() {
    connect();
    agree();
    awake();
  }
  // Returns whether the ps finds a request in memory.
  bool poll() {
    return server_->ask([this](Listener&) { return terms_.memory->poll(); });
  }
  // Polls for answers in memory until one is present. On return the ps waits for the next request,
  // also if one PUSH followed the request that it has answered.
  void await_answer() {
    while (!channel_->has_frame()) std::this_thread::yield();
    settle();  // the ps has answered, and lets others run before it reads that PUSH
    settle();
  }
  void expect_parameters(bool in_place) {
    FrameHeader header;
    ASSERT_FALSE(channel_->receive_header(header, patience()));
    EXPECT_EQ(
        header,
        (FrameHeader{.kind = FrameKind::kParameters, .request_id = 4, .body_size = kPageBytes}))
        << "the same as in a frame";
    const BodyLocation place = channel_->body_location();
    ASSERT_EQ(place.view != nullptr, in_place);
    if (in_place) {
      EXPECT_THAT(place.bytes(), ::testing::Each(std::byte{9}));
    }
    std::vector<std::byte> body(header.body_size);
    ASSERT_FALSE(channel_->receive_body(body, patience()));
    EXPECT_THAT(body, ::testing::Each(std::byte{9}));
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
  std::unique_ptr<LiveServer> server_;
  std::unique_ptr<Channel> channel_;

 private:
  // Waits until the ps's coroutine has suspended, and all that was ready then has run.
  void settle() {
    server_->ask([](Listener&) { return 0; });
  }
  static int first_of(std::span<const std::byte> body) {
    return body.empty() ? -1 : std::to_integer<int>(body.front());
  }
  void record(const FrameHeader& header, const BodyInPlace& body) {
    happened_.add((body.bytes.empty() ? "sent " : "in place ") + std::to_string(header.body_size) +
                  " bytes, flags " + std::to_string(header.flags));
  }
};

}  // namespace disttf::net
