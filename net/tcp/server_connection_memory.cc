// ServerConnection's part for shared memory: the agreement with the peer, and bodies that are left
// there instead of being sent.
#include <array>
#include <asio/error.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/tcp/as_tuple.h"
#include "net/tcp/server_connection.h"
#include "net/wire/messages.h"

namespace disttf::net {

asio::awaitable<bool> ServerConnection::take_own(const FrameHeader& header,
                                                 std::chrono::milliseconds timeout,
                                                 std::error_code& error) {
  if (header.kind == FrameKind::kShare && terms_) {
    error = co_await take_offer(header, timeout);
  } else if (header.kind == FrameKind::kShared && slots_) {
    error = co_await take_answer(header, timeout);
  } else {
    co_return false;
  }
  co_return true;
}

asio::awaitable<std::error_code> ServerConnection::take_offer(FrameHeader header,
                                                              std::chrono::milliseconds timeout) {
  std::array<std::byte, kSharedOfferBytes> body{};
  if (ShareFrame{}.from_header(header) || header.bytes_behind() != body.size()) {
    co_return refuse_read(header, "malformed SHARE frame");
  }
  if (const auto error = co_await read_body(body, timeout)) co_return error;
  SharedOffer offer;
  if (const auto error = decode(body, offer)) co_return read_failed(error);
  std::vector<std::byte> answer;
  // A new offer ends an earlier agreement.
  in_place_.reset();
  const std::unique_ptr<PendingHandover> before = std::move(handover_);
  // Only the first SHARE of an agreement has a listener's name, which tells the two rounds apart.
  if (offer.listener_name != 0) {
    handover_ = PendingHandover::begin(offer, terms_, answer);
  } else if (before && offer.size != 0) {
    in_place_ = before->finish(answer);
    // The hook may refer to this object, which owns in_place_.
    if (in_place_) in_place_->on_request([this] { return wake_reader(); });
  }
  send(SharedFrame{header.request_id}.to_header(), std::move(answer));
  co_return std::error_code{};
}

asio::awaitable<std::error_code> ServerConnection::take_answer(FrameHeader header,
                                                               std::chrono::milliseconds timeout) {
  std::array<std::byte, kSharedOfferBytes> body{};
  const bool declines = header.bytes_behind() == 0;
  if (SharedFrame{}.from_header(header) || (!declines && header.bytes_behind() != body.size())) {
    co_return refuse_read(header, "malformed SHARED frame");
  }
  const auto part = std::span(body).first(declines ? 0 : body.size());
  if (const auto error = co_await read_body(part, timeout)) co_return error;
  // The memory was handed over before this SHARE is sent, so the peer finds it there.
  if (const auto next = slots_->answered(part)) {
    send(ShareFrame{header.request_id}.to_header(), encode(*next));
  }
  co_return std::error_code{};
}

bool ServerConnection::send_borrowed(FrameHeader header, std::span<const std::byte> body,
                                     std::shared_ptr<const void> owner) {
  const bool may_be_left = in_place_ && state_ == State::kOpen;
  const Left left = may_be_left ? in_place_->leave(header, body) : Left::kNot;
  if (is_all_left(left)) return false;
  Queued frame;
  if (left == Left::kNot) {
    frame.borrowed = body;
    frame.owner = std::move(owner);
  }
  enqueue(header, std::move(frame));
  return left == Left::kNot;
}

void ServerConnection::offer(std::unique_ptr<BodyRing> slots) {
  slots_ = std::move(slots);
  send(ShareFrame{}.to_header(), encode(slots_->offer()));
}

std::span<std::byte> ServerConnection::place_for(std::size_t head, std::size_t rest) {
  return slots_ && state_ == State::kOpen ? slots_->keep(head, rest) : std::span<std::byte>();
}

ServerConnection::Delivery ServerConnection::send_acknowledged(FrameHeader header,
                                                               std::vector<std::byte> head,
                                                               std::span<const std::byte> rest) {
  const bool may_be_left = slots_ && state_ == State::kOpen;
  const Left left = may_be_left ? slots_->leave(header, head, rest) : Left::kNot;
  if (is_all_left(left)) return slots_->is_handed_off() ? Delivery::kHandedOff : Delivery::kLeft;
  // The header carries the body's offset; the body itself is not sent.
  if (left == Left::kBody) {
    head.clear();
  } else {
    head.insert(head.end(), rest.begin(), rest.end());
  }
  send(header, std::move(head));
  return left == Left::kNot ? Delivery::kSent : Delivery::kLeft;
}

bool ServerConnection::acknowledge(const Ack& ack) {
  const FrameHeader header = ack.to_header();
  const bool may_be_left = in_place_ && state_ == State::kOpen;
  const Left left = may_be_left ? in_place_->leave_ack(header) : Left::kNot;
  if (is_all_left(left)) return false;
  send(header);
  return true;
}

bool ServerConnection::is_all_left(Left left) {
  if (left == Left::kHeaderAndWake) send(Heartbeat{}.to_header());
  return left == Left::kHeader || left == Left::kHeaderAndWake;
}

// ------------------------------------------------------------------ headers that come from there

// An end that has offered memory is offered none. The decision uses only local state, because the
// peer's memory may change between two reads.
bool ServerConnection::has_left_header() const noexcept {
  return slots_ ? slots_->has_ack() : in_place_ && in_place_->has_request();
}

std::error_code ServerConnection::take_left_header(FrameHeader& header) {
  const std::error_code error = slots_ ? slots_->take_ack(header) : in_place_->take_request(header);
  // Stays set: after invalid data in the memory, take_rest() must not rely on any later header.
  was_nonsense_ = was_nonsense_ || error;
  return error;
}

bool ServerConnection::find_body(FrameHeader& header) {
  auto body = in_place_->find(header);
  was_nonsense_ = was_nonsense_ || !body;
  if (!body) return false;
  body_in_place_ = std::move(*body);
  header.flags &= static_cast<std::uint16_t>(~unsigned{kFlagInPlace});
  header.body_offset = 0;
  return true;
}

ServerConnection::Rest ServerConnection::take_rest(FrameHeader& header) {
  // First ends the handing off, then polls: see set_owner_token().
  if (!in_place_) return Rest::kNone;
  in_place_->take_no_more();
  if (!was_nonsense_ && !in_place_->has_request()) return Rest::kNone;
  const bool is_read = !was_nonsense_ && !take_left_header(header) && find_body(header);
  return is_read ? Rest::kHeader : Rest::kNonsense;
}

asio::awaitable<std::error_code> ServerConnection::read_unless_left(
    std::span<std::byte> buffer, std::size_t& received, std::chrono::milliseconds timeout) {
  if (state_ != State::kOpen) co_return read_failed({});
  begin_read(timeout);
  std::error_code error = asio::error::would_block;
  while (error == asio::error::would_block && state_ == State::kOpen) {
    // Without this check TLS bytes that came with the last ones would not be reported by the
    // socket.
    if (!may_have_bytes_) co_await await_either();
    if (state_ != State::kOpen || has_left_header()) break;
    received = read_now(buffer, error);
    may_have_bytes_ = tls_ && !error;
  }
  read_deadline_ = kNever;
  if (state_ == State::kOpen && error == asio::error::would_block) {
    co_return asio::error::interrupted;
  }
  if (error || state_ != State::kOpen) co_return read_failed(error);
  is_excused_ = false;
  co_return std::error_code{};
}

// The wait for the socket stays pending while headers come through the mailbox. Cancelling and
// restarting it each time would cost some microseconds of system calls and of OpenSSL.
asio::awaitable<void> ServerConnection::await_either() {
  if (!std::exchange(awaits_socket_, true)) {
    socket_.async_wait(asio::ip::tcp::socket::wait_read,
                       [weak = weak_from_this()](std::error_code) {
                         const auto self = weak.lock();
                         if (!self) return;
                         self->awaits_socket_ = false;  // the following read reports any error
                         self->either_.cancel();
                       });
  }
  is_interruptible_ = true;
  while (awaits_socket_ && is_interruptible_) {
    co_await either_.async_wait(kAsTuple);
  }
  is_interruptible_ = false;
}

bool ServerConnection::wake_reader() {
  if (!std::exchange(is_interruptible_, false)) return false;
  either_.cancel();
  return true;
}

bool ServerConnection::poll() { return slots_ && slots_->has_ack() && wake_reader(); }

void ServerConnection::set_parked(bool parked) noexcept {
  if (slots_) slots_->set_parked(parked);
}

}  // namespace disttf::net
