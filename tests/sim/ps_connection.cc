#include "tests/sim/ps_connection.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "net/memory/header_mailbox.h"
#include "tests/sim/ps_io.h"
#include "tests/sim/ps_process.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;

PsConnection::PsConnection(PsProcess& process, ConnectionId id, const net::Hello& hello,
                           std::size_t range)
    : process_(process), id_(id), range_(range), reader_(process.io().context()) {
  hello_ = hello;
  peer_text_ = net::to_string(hello.from);
}

// The product's socket is closed with its last owner.
PsConnection::~PsConnection() {
  end(/*finish=*/true);
  if (const auto memory = std::dynamic_pointer_cast<PsMemory>(memory_.lock())) {
    memory->forget(*this);
  }
  process_.forget(id_);
}

LeftUpdates& PsConnection::left() const { return process_.network().left_updates(id_); }

// --------------------------------------------------------------------------------------- arrivals

void PsConnection::header_came(const Frame& frame) {
  if (!frame.is_left) {  // else it only says that something lies in memory
    incoming_.push_back({.frame = frame, .arrived = is_dialed() ? frame.body.size() : 0});
  }
  reader_.wake();
}

void PsConnection::body_came(const Frame& frame, std::size_t bytes) {
  Incoming& incoming = incoming_.empty() ? current_ : incoming_.back();
  const bool is_read_now = incoming_.empty() && reader_.has_any();
  if (!is_read_now && bytes != 0) {
    // The sender may go on: the operating system has a copy of what it sent.
    const auto copy = std::make_shared<Bytes>(frame.body.begin(), frame.body.end());
    incoming.frame.body = *copy;
    incoming.frame.owner = copy;
  }
  incoming.arrived = bytes;
  reader_.wake();
}

void PsConnection::was_closed() {
  has_ended_ = true;
  reader_.wake();
}

Time PsConnection::time_out(bool was_frozen) {
  const Time now = process_.now();
  if (was_frozen && deadline_ != Time::max() && !is_excused_) {
    is_excused_ = true;
    deadline_ = now + timeout_;
  }
  if (deadline_ <= now) {
    timed_out_ = true;
    end(/*finish=*/false);
    return Time::max();
  }
  return deadline_;
}

// ------------------------------------------------------------------------------------------ reads

void PsConnection::begin_wait(std::chrono::milliseconds timeout) {
  timeout_ = timeout;
  if (timeout > std::chrono::milliseconds::zero()) {
    deadline_ = process_.now() + timeout;
    process_.watch_timeouts(deadline_);
  }
}

std::error_code PsConnection::fail(std::error_code error) {
  deadline_ = Time::max();
  if (timed_out_) {
    return std::make_error_code(std::errc::timed_out);
  }
  if (!is_open()) {
    return std::make_error_code(std::errc::operation_canceled);
  }
  end(/*finish=*/false);
  return error;
}

asio::awaitable<std::error_code> PsConnection::more() {
  if (!is_open() || has_ended_) {
    co_return fail(std::make_error_code(std::errc::connection_reset));
  }
  co_await reader_.wait();
  co_return std::error_code{};
}

asio::awaitable<std::error_code> PsConnection::read_header(FrameHeader& header,
                                                           std::chrono::milliseconds timeout) {
  process_.observe();
  if (current_.read != current_.frame.body.size() && is_open()) {
    process_.violate("leaves the body of a " + std::string(name_of(last_.kind)) + " unread");
  }
  if (!body_in_place_.bytes.empty()) {
    process_.mark(last_.kind == FrameKind::kPush     ? Mark::kElasticInPlace
                  : last_.kind == FrameKind::kUpdate ? Mark::kUpdateInPlace
                                                     : Mark::kInPlace);
  }
  body_in_place_ = {};
  current_ = {};
  begin_wait(timeout);
  for (bool has_waited = false;; has_waited = true) {
    // A read that waits sees the end of the connection before it looks at the memory.
    const bool sees_end = has_waited && has_ended_ && incoming_.empty();
    if (is_open() && !sees_end && take_left(header)) {
      break;
    }
    if (is_open() && !incoming_.empty()) {
      take_frame(header);
      if (!negotiate(header)) {
        break;
      }
    } else if (const std::error_code error = co_await more()) {
      co_return error;
    }
  }
  was_read(header);
  co_return std::error_code{};
}

bool PsConnection::take_left(FrameHeader& header) {
  if (!has_agreed_ || hello_.purpose != net::ChannelPurpose::kReplica) {
    return false;
  }
  LeftUpdates& memory = left();
  if (is_dialed() && !memory.acks.empty()) {
    header = memory.acks.front();
    memory.acks.pop_front();
    return true;
  }
  if (is_dialed() || memory.frames.empty()) {
    return false;
  }
  const Frame frame = std::move(memory.frames.front());
  memory.frames.pop_front();
  header = frame.header;
  body_in_place_ = frame.in_place;
  process_.is_torn(range_, frame.is_torn);
  return true;
}

void PsConnection::take_frame(FrameHeader& header) {
  current_ = std::move(incoming_.front());
  incoming_.pop_front();
  Frame& frame = current_.frame;
  header = frame.header;
  process_.is_torn(range_, frame.is_torn);
  if (frame.in_place.bytes.empty()) {
    return;
  }
  // A trainer offers its memory when it connects; here, with its first gradient.
  if (has_agreed_ || (header.kind != FrameKind::kUpdate && agree())) {
    body_in_place_ = std::exchange(frame.in_place, {});
  } else {
    frame.body = frame.in_place.bytes;
    frame.owner = frame.in_place.owner;
    current_.arrived = frame.body.size();
  }
}

bool PsConnection::agree() {
  const net::InPlaceTerms terms = terms_ ? terms_() : net::InPlaceTerms{};
  memory_ = terms.memory;
  has_agreed_ = terms.memory != nullptr;
  if (has_agreed_ && hello_.purpose == net::ChannelPurpose::kStep) {
    process_.check_memory(range_, *terms.memory);
  }
  return has_agreed_;
}

bool PsConnection::negotiate(const FrameHeader& header) {
  if (header.kind == FrameKind::kShared) {
    has_agreed_ = left().is_agreed;
    return true;
  }
  if (header.kind != FrameKind::kShare) {
    return false;
  }
  const net::InPlaceTerms terms = terms_ ? terms_() : net::InPlaceTerms{};
  const std::size_t bytes = left().offered;
  if (terms.memory && terms.least <= bytes && bytes <= terms.most) {
    memory_ = terms.memory;
    has_agreed_ = true;
    dynamic_cast<PsMemory&>(*terms.memory).agreed(*this, left());
    process_.check_memory(range_, *terms.memory);
  }
  process_.network().send(id_, process_, FrameHeader{.kind = FrameKind::kShared});
  return true;
}

void PsConnection::was_read(const FrameHeader& header) {
  deadline_ = Time::max();
  is_excused_ = false;
  last_ = header;
  if (header.kind == FrameKind::kPushPull) {
    push_ = header;
  }
  if (header.kind == FrameKind::kGetSnapshotShard && !has_agreed_ && process_.shares_snapshots()) {
    static_cast<void>(agree());
  }
  if (header.kind == FrameKind::kAck && offered_ != 0) {
    std::optional<std::uint64_t>& unread = left().unread;
    if (unread && *unread <= header.request_id) {
      unread.reset();
    }
  }
  process_.header_was_read(*this, header);
}

asio::awaitable<std::error_code> PsConnection::read_body(std::span<std::byte> body,
                                                         std::chrono::milliseconds timeout) {
  return read(body.data(), body.size(), timeout);
}

asio::awaitable<std::error_code> PsConnection::discard_body(std::uint64_t bytes,
                                                            std::chrono::milliseconds timeout) {
  return read(nullptr, body_in_place_.bytes.empty() ? bytes : 0, timeout);
}

asio::awaitable<std::error_code> PsConnection::read(std::byte* body, std::size_t size,
                                                    std::chrono::milliseconds timeout) {
  process_.observe();
  if (body != nullptr && !body_in_place_.bytes.empty()) {  // copied from there
    current_.frame.body = body_in_place_.bytes;
    current_.frame.owner = body_in_place_.owner;
    current_.arrived = body_in_place_.bytes.size();
    body_in_place_ = {};
  }
  begin_wait(timeout);
  for (std::size_t done = 0; is_open();) {
    const std::size_t part = std::min(size - done, current_.arrived - current_.read);
    if (part != 0 && body != nullptr) {
      std::memcpy(body + done, current_.frame.body.data() + current_.read, part);
    }
    current_.read += part;
    done += part;
    if (done == size) {
      deadline_ = Time::max();
      co_return std::error_code{};
    }
    if (current_.read == current_.frame.body.size()) {
      process_.violate("waits for more than the body of a " + std::string(name_of(last_.kind)));
    }
    if (const std::error_code error = co_await more()) {
      co_return error;
    }
  }
  co_return fail({});
}

asio::awaitable<bool> PsConnection::is_welcomed(std::chrono::milliseconds timeout) {
  FrameHeader header;
  const bool is_welcome =
      !co_await read_header(header, timeout) && header.kind == FrameKind::kWelcome;
  current_ = {};
  co_return is_welcome;
}

// ------------------------------------------------------------------------------------------ sends

void PsConnection::send_frame(Frame frame) {
  if (!is_open()) {
    return;
  }
  // No update may overtake this frame through the memory.
  if (offered_ != 0 && !net::is_bodiless<net::Heartbeat>(frame.header)) {
    left().unread = frame.header.kind == FrameKind::kUpdate
                        ? frame.header.request_id
                        : std::numeric_limits<std::uint64_t>::max();
  }
  process_.network().send(id_, process_, std::move(frame));
}

void PsConnection::send(FrameHeader header, std::vector<std::byte> owned) {
  if (!is_open() || !process_.may_send(*this, header)) {
    return;
  }
  Frame frame{.header = header, .is_torn = process_.is_torn(range_)};
  if (!owned.empty()) {
    const auto bytes = std::make_shared<Bytes>(std::move(owned));
    frame.body = *bytes;
    frame.owner = bytes;
  }
  send_frame(std::move(frame));
}

bool PsConnection::send_borrowed(FrameHeader header, std::span<const std::byte> body,
                                 std::shared_ptr<const void> owner) {
  if (!is_open() || !process_.may_send(*this, header)) {
    return true;
  }
  if (header.kind == FrameKind::kSnapshotShard && header.sequence != last_.sequence) {
    process_.violate("gives cut " + std::to_string(header.sequence) + ", not the " +
                     std::to_string(last_.sequence) + " that was asked for");
  }
  Frame frame{.header = header,
              .body = body,
              .owner = std::move(owner),
              .is_torn = process_.is_torn(range_)};
  if (process_.is_elastic(range_)) {
    // The ps does not wait for a trainer that receives slowly, whose parameters may then be torn:
    // its gradients would be too late to count. The simulation sends a copy instead.
    const auto copy = std::make_shared<Bytes>(body.begin(), body.end());
    frame.body = *copy;
    frame.owner = copy;
  } else {
    frame.sum = sum_of(frame.body);
  }
  send_frame(std::move(frame));
  return true;
}

net::FrameConnection::Delivery PsConnection::send_acknowledged(FrameHeader header,
                                                               std::vector<std::byte> head,
                                                               std::span<const std::byte> rest) {
  const auto bytes = std::make_shared<Bytes>(std::move(head));
  bytes->insert(bytes->end(), rest.begin(), rest.end());
  Frame frame{.header = header, .is_torn = process_.is_torn(range_)};
  if (!is_open()) {
    return Delivery::kSent;
  }
  const bool is_in_memory =
      has_agreed_ && !rest.empty() && rest.data() == std::as_const(place_).data();
  if (!is_in_memory) {
    frame.body = *bytes;
    frame.owner = bytes;
    send_frame(std::move(frame));
    return Delivery::kSent;
  }
  frame.in_place = {.bytes = *bytes, .owner = bytes};
  LeftUpdates& memory = left();
  if (memory.unread || memory.frames.size() >= net::kHeadersInMailbox) {
    send_frame(std::move(frame));  // the header
    return Delivery::kLeft;
  }
  frame.is_left = true;
  frame.header.body_size = bytes->size();
  memory.frames.push_back(frame);
  if (!memory.is_backup_parked) {
    process_.mark(Mark::kLeftWithoutWake);
  } else {
    process_.network().send(id_, process_, std::move(frame));
  }
  if (!memory.is_taken) {
    return Delivery::kLeft;
  }
  process_.mark(Mark::kHandedOff);
  return Delivery::kHandedOff;
}

bool PsConnection::acknowledge(const net::Ack& ack) {
  const FrameHeader header = ack.to_header();
  // In the product's mailbox, too, only the update that was taken last is acknowledged.
  if (!is_open() || is_dialed() || !has_agreed_ || last_.kind != FrameKind::kUpdate ||
      last_.request_id != header.request_id || memory_.expired() ||
      left().acks.size() >= net::kHeadersInMailbox) {
    send(header);
    return true;
  }
  process_.mark(Mark::kAcknowledgedInMemory);
  left().acks.push_back(header);
  if (left().is_primary_parked) {
    process_.network().send(id_, process_, {.header = header, .is_left = true});
  }
  return false;
}

// Frames take a moment to leave.
asio::awaitable<bool> PsConnection::drained(std::chrono::milliseconds /*timeout*/) {
  if (is_open()) {
    const std::unique_ptr<roles::Alarm> moment = process_.io().make_alarm();
    co_await moment->wait_until(process_.now() + std::chrono::milliseconds(1));
  }
  co_return is_open();
}

void PsConnection::refuse(const net::Refusal& refusal, std::uint64_t request_id) {
  if (is_open()) {
    process_.mark(Mark::kRefused);
    if (hello_.purpose == net::ChannelPurpose::kState && hello_.from.job != net::Job::kEvaluator) {
      process_.violate("refuses a request for a snapshot: " + refusal.sentence);
    }
    send(net::RefusedFrame{request_id}.to_header(), net::encode(refusal));
    finish();
  }
}

bool PsConnection::is_open() const noexcept { return !is_closed_ && process_.is_alive(); }

void PsConnection::end(bool finish) noexcept {
  if (!is_closed_) {
    is_closed_ = true;
    if (has_agreed_ && !is_dialed()) {
      left().is_taken = false;
    }
    process_.network().close(id_, process_, finish);
    reader_.wake();
  }
}

// ---------------------------------------------------------------------------------- shared memory

void PsConnection::answer_offers(std::function<net::InPlaceTerms()> terms) {
  terms_ = std::move(terms);
}

void PsConnection::offer_memory(std::size_t bytes) {
  offered_ = bytes;
  has_agreed_ = false;
  left() = LeftUpdates();
  left().offered = bytes;
  process_.network().send(id_, process_, FrameHeader{.kind = FrameKind::kShare});
}

void PsConnection::forget_memory() {
  has_agreed_ = false;
  left().is_taken = false;
}

bool PsConnection::awaits_left() const {
  return has_agreed_ && is_open() && reader_.has_any() &&
         !(is_dialed() ? left().acks.empty() : left().frames.empty());
}

void PsConnection::check_sleep() const {
  if (!has_agreed_ || !is_open() || hello_.purpose != net::ChannelPurpose::kReplica) {
    return;
  }
  if (awaits_left()) {
    process_.violate("sleeps though a frame lies in its memory");
  }
  if (!(is_dialed() ? left().is_primary_parked : left().is_backup_parked)) {
    process_.violate("sleeps and has not asked its peer for a wake");
  }
}

bool PsConnection::poll() {
  const bool wakes = awaits_left();
  if (wakes) {
    reader_.wake();
  }
  return wakes;
}

void PsConnection::set_parked(bool parked) noexcept {
  if (offered_ != 0) {
    left().is_primary_parked = parked;
  }
}

// Sometimes no slot is free, or none is large enough.
std::span<std::byte> PsConnection::place_for(std::size_t /*head*/, std::size_t rest) {
  if (!is_open() || !has_agreed_ || process_.lacks_place(id_, ++places_)) {
    return {};
  }
  place_.assign(rest, std::byte{0});
  return place_;
}

net::FrameConnection::Rest PsConnection::take_rest(FrameHeader& header) {
  if (!has_agreed_ || is_dialed()) {
    return Rest::kNone;
  }
  left().is_taken = false;
  body_in_place_ = {};
  if (!take_left(header)) {
    return Rest::kNone;
  }
  process_.mark(Mark::kRestTaken);
  return Rest::kHeader;
}

}  // namespace disttf::sim
