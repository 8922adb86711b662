// ServerConnection's part for shared memory: the agreement with the peer, and bodies that are left
// there instead of being sent.
#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/tcp/server_connection.h"
#include "net/wire/messages.h"

namespace disttf::net {

void ServerConnection::answer_offers(std::function<InPlaceTerms()> terms) {
  // The hook refers to this object, which owns in_place_.
  in_place_ = std::make_unique<InPlaceBodies>(std::move(terms), [this] { return reader_.wake(); });
  memory_ = in_place_.get();
}

void ServerConnection::offer(std::unique_ptr<BodyRing> slots) {
  slots_ = std::move(slots);
  memory_ = slots_.get();
  send(ShareFrame{}.to_header(), encode(slots_->offer()));
}

asio::awaitable<std::error_code> ServerConnection::negotiate(FrameHeader header,
                                                             std::chrono::milliseconds timeout) {
  if (memory_->is_malformed(header)) {
    co_return refuse_read(header, header.kind == FrameKind::kShare ? "malformed SHARE frame"
                                                                   : "malformed SHARED frame");
  }
  std::array<std::byte, kBodyBytes<SharedOffer>> bytes{};
  const auto body = std::span(bytes).first(header.bytes_behind());
  if (const auto error = co_await reader_.read_body(body, timeout)) co_return error;
  std::optional<MailboxEnd::Reply> reply;
  if (const auto error = memory_->negotiate(header, body, reply)) co_return read_failed(error);
  if (reply) send(reply->header, std::move(reply->body));
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

asio::awaitable<std::error_code> ServerConnection::read_either(FrameHeader& header,
                                                               std::chrono::milliseconds timeout) {
  // After a header from the mailbox other coroutines get a turn first, as they do when a read
  // waits.
  if (std::exchange(was_in_memory_, false) && has_left_header()) {
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
    if (state_ != State::kOpen) co_return read_failed({});
  }
  while (!has_left_header()) {
    if (kept_) {
      header = *std::exchange(kept_, std::nullopt);
      co_return std::error_code{};
    }
    const auto error = co_await reader_.read_header_unless_left(header, timeout);
    // A header in the mailbox has ended the wait.
    if (error == asio::error::interrupted) continue;
    if (error || !has_left_header()) co_return error;
    // A header in the mailbox was left before the frame arrived: it is read first.
    kept_ = header;
  }
  is_excused_ = false;
  was_in_memory_ = true;
  const auto error = take_left_header(header);
  co_return error ? read_failed(error) : error;
}

std::error_code ServerConnection::accept(FrameHeader& header) {
  if (memory_) memory_->received(header);
  if ((header.flags & kFlagInPlace) == 0) return {};
  // Sent over an earlier connection and arrived late. The sender must not exit for that: it
  // connects again.
  if (!shares_memory()) return read_failed(WireError::kUnexpected);
  return find_body(header) ? std::error_code{}
                           : refuse_read(header, "a gradient in memory that is not shared");
}

asio::awaitable<std::error_code> ServerConnection::copy_body(std::span<std::byte> body) {
  const std::size_t part = std::min(body.size(), body_in_place_.bytes.size());
  const auto here = body_in_place_.bytes.first(part);
  std::copy(here.begin(), here.end(), body.begin());
  body_in_place_.bytes = body_in_place_.bytes.subspan(part);
  co_return part == body.size() ? std::error_code{} : read_failed(WireError::kBadBody);
}

std::error_code ServerConnection::take_left_header(FrameHeader& header) {
  const std::error_code error = memory_->take_header(header);
  // Stays set: after invalid data in the memory, take_rest() must not rely on any later header.
  was_nonsense_ = was_nonsense_ || error;
  return error;
}

bool ServerConnection::find_body(FrameHeader& header) {
  auto body = memory_->find(header);
  was_nonsense_ = was_nonsense_ || !body;
  if (!body) return false;
  body_in_place_ = std::move(*body);
  header.flags &= static_cast<std::uint16_t>(~unsigned{kFlagInPlace});
  header.body_offset = 0;
  return true;
}

ServerConnection::Rest ServerConnection::take_rest(FrameHeader& header) {
  // First ends the handing off, then polls: see set_owner_token().
  if (!shares_memory()) return Rest::kNone;
  memory_->take_no_more();
  if (!was_nonsense_ && !has_left_header()) return Rest::kNone;
  const bool is_read = !was_nonsense_ && !take_left_header(header) && find_body(header);
  return is_read ? Rest::kHeader : Rest::kNonsense;
}

bool ServerConnection::poll() { return has_left_header() && reader_.wake(); }

void ServerConnection::set_parked(bool parked) noexcept {
  if (slots_) slots_->set_parked(parked);
}

}  // namespace disttf::net
