#include "net/tcp/faulty_channel.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <cassert>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace disttf::net {
namespace {

constexpr std::array kRequestFaults = {
    FrameFault::kLost,    FrameFault::kCut,   FrameFault::kUnconfirmed, FrameFault::kOvertaken,
    FrameFault::kDelayed, FrameFault::kTwice, FrameFault::kAgainLater};
constexpr std::array kReplyFaults = {FrameFault::kLost, FrameFault::kCut, FrameFault::kDelayed};

// The most frames between a request and its late copy: enough for a recovery in between.
constexpr std::uint32_t kLongestWayRound = 8;

// The fault depends only on the seed and the frame's number, so a failing test can be repeated
// exactly.
FrameFate fate(const FaultOptions& options, std::uint64_t index,
               std::span<const FrameFault> faults) {
  const std::uint64_t bits =
      options.random_bits(options.seed, options.purpose, options.stream, index);
  // The low half decides whether and which, the high half how much, so the choices are independent.
  const std::uint64_t low = bits & 0xFFFF'FFFFU;
  if (low % 1000 >= options.per_1000) {
    return {};
  }
  return {.fault = faults[(low / 1000) % faults.size()],
          .amount = static_cast<std::uint32_t>(bits >> 32U)};
}

}  // namespace

FrameFate fate_of_request(const FaultOptions& options, std::uint64_t number) {
  // Even indices for requests and odd ones for replies keep the two sequences independent.
  return fate(options, 2 * number, kRequestFaults);
}

FrameFate fate_of_reply(const FaultOptions& options, std::uint64_t number) {
  return fate(options, 2 * number + 1, kReplyFaults);
}

// Outlives the channels: a late frame may leave over the connection that replaced its own.
struct FaultInjector::State {
  struct Late {
    FrameHeader header;
    std::vector<std::byte> body;
    std::uint32_t behind = 0;  // frames that are sent before it
  };

  void log(const FrameHeader& header, const std::string& what) const {
    if (options.log) {
      options.log("frame " + std::to_string(requests - 1) + " (kind " +
                  std::to_string(static_cast<int>(header.kind)) + ", step " +
                  std::to_string(header.step) + ") " + what);
    }
  }

  const FaultOptions options;
  std::uint64_t requests = 0;  // sent so far
  FrameFate reply{};           // of the reply to the last request, until that has come
  std::optional<Late> late{};
};

class FaultyChannel final : public Channel {
 public:
  FaultyChannel(std::unique_ptr<Channel> channel, FaultInjector::State& state,
                const Interrupt& interrupt)
      : channel_(std::move(channel)), state_(state), interrupt_(interrupt) {}

  [[nodiscard]] std::error_code send(FrameHeader header, std::span<const std::byte> body,
                                     Deadline deadline) override;
  [[nodiscard]] std::error_code receive_header(FrameHeader& header, Deadline deadline) override;
  [[nodiscard]] std::error_code receive_body(std::span<std::byte> body, Deadline deadline) override;
  void close() noexcept override {
    cut_after_.reset();
    channel_->close();
  }
  [[nodiscard]] bool is_open() const noexcept override { return channel_->is_open(); }
  [[nodiscard]] int fd() noexcept override { return channel_->fd(); }

 private:
  [[nodiscard]] FrameFate next_fate(const FrameHeader& header);
  [[nodiscard]] std::error_code send_whole(const FrameHeader& header,
                                           std::span<const std::byte> body, Deadline deadline);
  [[nodiscard]] std::error_code send_part(FrameHeader header, std::span<const std::byte> body,
                                          std::size_t bytes, Deadline deadline);
  [[nodiscard]] std::error_code send_late(Deadline deadline);
  void keep(const FrameHeader& header, std::span<const std::byte> body, std::uint32_t behind);
  void delay(const FrameHeader& header, std::uint32_t amount, const char* what);
  std::error_code break_off(std::error_code error) {
    close();
    return error;
  }

  const std::unique_ptr<Channel> channel_;
  FaultInjector::State& state_;
  const Interrupt& interrupt_;
  std::optional<std::uint64_t> cut_after_;  // bytes of the reply's body that still arrive
};

FrameFate FaultyChannel::next_fate(const FrameHeader& header) {
  const std::uint64_t number = state_.requests++;
  // Drawn together with the request's fault, so replies that never arrive do not shift the
  // sequence.
  state_.reply = fate_of_reply(state_.options, number);
  FrameFate fate = fate_of_request(state_.options, number);
  // See wrap(): other requests must not arrive late.
  if (header.kind != FrameKind::kPull && header.kind != FrameKind::kPush &&
      header.kind != FrameKind::kPushPull) {
    if (fate.fault == FrameFault::kOvertaken) {
      fate.fault = FrameFault::kLost;
    } else if (fate.fault == FrameFault::kAgainLater) {
      fate.fault = FrameFault::kTwice;
    }
  }
  return fate;
}

std::error_code FaultyChannel::send(FrameHeader header, std::span<const std::byte> body,
                                    Deadline deadline) {
  if (!is_open()) {
    return asio::error::not_connected;
  }
  const FrameFate fate = next_fate(header);
  switch (fate.fault) {
    case FrameFault::kNone:
      return send_whole(header, body, deadline);
    case FrameFault::kLost:
      state_.log(header, "is lost");
      return break_off(asio::error::connection_reset);
    case FrameFault::kCut:
      return send_part(header, body, fate.amount % (kHeaderBytes + body.size()), deadline);
    case FrameFault::kUnconfirmed: {
      state_.log(header, "is sent, but reported as lost");
      // The server processes the request, but the sender must assume that it did not: the case that
      // retries must handle.
      const std::error_code error = send_whole(header, body, deadline);
      return break_off(error ? error : asio::error::connection_reset);
    }
    case FrameFault::kOvertaken:
      state_.log(header, "is lost for now");
      keep(header, body, 1);
      return break_off(asio::error::connection_reset);
    case FrameFault::kDelayed:
      delay(header, fate.amount, "is");
      return send_whole(header, body, deadline);
    // The server must recognize the copy.
    case FrameFault::kTwice: {
      state_.log(header, "is sent twice");
      const std::error_code error = send_whole(header, body, deadline);
      return error ? error : channel_->send(header, body, deadline);
    }
    case FrameFault::kAgainLater: {
      const std::error_code error = send_whole(header, body, deadline);
      keep(header, body, 1 + fate.amount % kLongestWayRound);
      return error;
    }
  }
  return {};
}

// Sends the frame, and after it the late one that is due.
std::error_code FaultyChannel::send_whole(const FrameHeader& header,
                                          std::span<const std::byte> body, Deadline deadline) {
  const std::error_code error = channel_->send(header, body, deadline);
  return error ? error : send_late(deadline);
}

std::error_code FaultyChannel::send_late(Deadline deadline) {
  // Counts frames instead of time, so the result does not depend on the machine's speed.
  if (!state_.late || --state_.late->behind > 0) {
    return {};
  }
  const FaultInjector::State::Late late = std::move(*state_.late);
  state_.late.reset();
  state_.log(late.header, "comes late, as request " + std::to_string(late.header.request_id));
  return channel_->send(late.header, late.body, deadline);
}

// Channels write whole frames, so this partial frame goes to the non-blocking socket directly.
std::error_code FaultyChannel::send_part(FrameHeader header, std::span<const std::byte> body,
                                         std::size_t bytes, Deadline deadline) {
  state_.log(header, "is cut after " + std::to_string(bytes) + " bytes");
  if ((header.flags & kFlagInPlace) == 0) {
    header.body_size = body.size();
  }
  std::vector<std::byte> frame(kHeaderBytes);
  encode_header(header, std::span(frame).first<kHeaderBytes>());
  frame.insert(frame.end(), body.begin(), body.end());
  std::span<const std::byte> left = std::span(frame).first(bytes);
  while (!left.empty()) {
    const ssize_t sent = ::send(fd(), left.data(), left.size(), MSG_NOSIGNAL);
    std::error_code error;
    if (sent < 0 && errno == EAGAIN) {
      error = wait_for(fd(), POLLOUT, interrupt_, deadline);
    } else if (sent < 0 && errno != EINTR) {
      error = {errno, std::system_category()};
    }
    if (error) {
      return break_off(error);
    }
    left = left.subspan(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
  }
  return break_off(asio::error::connection_reset);
}

void FaultyChannel::keep(const FrameHeader& header, std::span<const std::byte> body,
                         std::uint32_t behind) {
  state_.late = {.header = header, .body = {body.begin(), body.end()}, .behind = behind};
}

void FaultyChannel::delay(const FrameHeader& header, std::uint32_t amount, const char* what) {
  const auto limit = static_cast<std::uint32_t>(state_.options.longest_delay.count());
  const std::chrono::milliseconds time(amount % (limit + 1));
  state_.log(header, std::string(what) + " delayed by " + std::to_string(time.count()) + " ms");
  interrupt_.wait_until(Clock::now() + time);
}

std::error_code FaultyChannel::receive_header(FrameHeader& header, Deadline deadline) {
  const std::error_code error = channel_->receive_header(header, deadline);
  // Heartbeats and work are not replies to a request, so they must not use up the reply's fault.
  if (error || header.kind == FrameKind::kHeartbeat || header.kind == FrameKind::kWork) {
    return error;
  }
  const FrameFate fate = std::exchange(state_.reply, {});
  if (fate.fault == FrameFault::kDelayed) {
    delay(header, fate.amount, "is a reply and");
  } else if (fate.fault == FrameFault::kCut && header.bytes_behind() > 0) {
    // The body is cut later, in receive_body(): the header itself is complete.
    cut_after_ = fate.amount % header.body_size;
    state_.log(header, "is a reply and cut after " + std::to_string(*cut_after_) + " bytes of it");
  } else if (fate.fault != FrameFault::kNone) {
    state_.log(header, "is a reply and lost");
    return break_off(asio::error::eof);
  }
  return {};
}

std::error_code FaultyChannel::receive_body(std::span<std::byte> body, Deadline deadline) {
  if (!cut_after_) {
    return channel_->receive_body(body, deadline);
  }
  const std::size_t whole = std::min<std::uint64_t>(*cut_after_, body.size());
  if (const std::error_code error = channel_->receive_body(body.first(whole), deadline)) {
    return break_off(error);
  }
  *cut_after_ -= whole;
  return whole < body.size() ? break_off(asio::error::eof) : std::error_code{};
}

FaultInjector::FaultInjector(FaultOptions options)
    : state_(std::make_unique<State>(State{.options = std::move(options)})) {
  assert(state_->options.random_bits != nullptr);
}
FaultInjector::~FaultInjector() = default;
FaultInjector::FaultInjector(FaultInjector&& other) noexcept = default;
FaultInjector& FaultInjector::operator=(FaultInjector&& other) noexcept = default;

std::unique_ptr<Channel> FaultInjector::wrap(std::unique_ptr<Channel> channel,
                                             const Interrupt& interrupt) {
  // The fault of a reply that the lost connection never delivered must not affect the new one.
  state_->reply = {};
  return std::make_unique<FaultyChannel>(std::move(channel), *state_, interrupt);
}

}  // namespace disttf::net
