#include "net/tcp/server_connection.h"

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <exception>
#include <utility>

#include "net/tcp/lookup.h"
#include "net/tcp/sockets.h"
#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"
#include "net/waiting/interrupt.h"
#include "net/wire/address.h"
#include "net/wire/messages.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;
}  // namespace

ServerConnection::ServerConnection(tcp::socket socket, ConnectionLimits limits,
                                   std::shared_ptr<const void> slot)
    : socket_(std::move(socket)),
      limits_(limits),
      slot_(std::move(slot)),
      reader_(socket_, *this),
      endpoint_text_(peer_endpoint_text(socket_.native_handle())),
      timer_(socket_.get_executor()) {
  peer_text_ = endpoint_text_;
  std::error_code ignored;  // fail only when the peer has gone; the first read reports that
  socket_.non_blocking(true, ignored);
  // Replies are written in one piece, so waiting to fill a segment would only add delay.
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  if (is_loopback(socket_.local_endpoint(ignored).address())) send_unpaced(socket_.native_handle());
}

void ServerConnection::begin_handshake(std::chrono::milliseconds timeout) {
  handshake_deadline_ = std::chrono::steady_clock::now() + timeout;
}

void ServerConnection::set_hello(const Hello& hello) {
  hello_ = hello;
  peer_text_ = to_string(hello.from) + " (" + endpoint_text_ + ")";
  handshake_deadline_ = kNever;
}

// ---------------------------------------------------------------------------------------- reading

std::error_code ServerConnection::read_failed(std::error_code error) noexcept {
  // A timer or close() has ended the read. The socket's own error would only say that it was
  // cancelled.
  if (timed_out_) return std::make_error_code(std::errc::timed_out);
  if (state_ != State::kOpen) return std::make_error_code(std::errc::operation_canceled);
  close();
  return error;
}

std::error_code ServerConnection::begin_wait(std::chrono::milliseconds timeout) {
  if (state_ != State::kOpen) return read_failed({});
  // During the handshake its deadline limits every read, so a peer cannot extend it byte by byte.
  read_deadline_ = handshake_deadline_;
  read_timeout_ = timeout;
  if (timeout > std::chrono::milliseconds::zero()) {
    read_deadline_ = std::min(read_deadline_, std::chrono::steady_clock::now() + timeout);
  }
  watch(read_deadline_);
  return {};
}

std::error_code ServerConnection::end_wait(std::error_code error) noexcept {
  // The deadline is cleared but the timer stays armed: re-arming it for every read would cost more
  // than one unneeded expiry.
  read_deadline_ = kNever;
  if (error || state_ != State::kOpen) return read_failed(error);
  is_excused_ = false;
  return {};
}

asio::awaitable<std::error_code> ServerConnection::accept_tls(Credentials& credentials) {
  read_deadline_ = handshake_deadline_;
  watch(read_deadline_);
  auto [error] = co_await socket_.async_wait(tcp::socket::wait_read, kAsTuple);
  std::byte first{};
  if (!error && state_ == State::kOpen) {
    socket_.receive(asio::buffer(&first, 1), asio::socket_base::message_peek, error);
  }
  if (error || state_ != State::kOpen) co_return read_failed(error);
  // Peeks, so that the bytes of a peer without TLS can still be read as a frame.
  if (!may_be_tls(std::span(&first, 1))) co_return TlsError::kNotTls;
  // A TLS stream is created only after the first byte, so idle connections cost no TLS state.
  co_return co_await shake_hands(TlsStream::accept(socket_, credentials));
}

asio::awaitable<std::error_code> ServerConnection::connect_tls(Credentials& credentials,
                                                               const Hello& hello) {
  return shake_hands(TlsStream::connect(socket_, credentials, hello, true /* reads ahead */));
}

asio::awaitable<std::error_code> ServerConnection::shake_hands(std::unique_ptr<TlsStream> tls) {
  if (!tls) co_return read_failed(std::make_error_code(std::errc::not_enough_memory));
  TlsStream& stream = *tls;
  tls_ = tls.get();
  reader_.use(std::move(tls));
  read_deadline_ = handshake_deadline_;
  watch(read_deadline_);
  const std::error_code error = co_await stream.handshake();
  read_deadline_ = kNever;
  if (!error && state_ == State::kOpen) co_return error;
  // A peer reads why its certificate is rejected only after it has begun to send; so linger.
  if (error == TlsError::kNotTrusted || error == TlsError::kNotValidNow ||
      error == TlsError::kNoCertificate) {
    finish();
    co_return error;
  }
  co_return read_failed(error);
}

std::error_code ServerConnection::refuse_read(const FrameHeader& header, const char* sentence) {
  refused_with_ = sentence;
  refuse({.exit_code = kExitError, .sentence = sentence}, header.request_id);
  return std::make_error_code(std::errc::operation_canceled);
}

asio::awaitable<std::error_code> ServerConnection::read_header(FrameHeader& header,
                                                               std::chrono::milliseconds timeout) {
  // Until a frame is the owner's: those of the agreement are handled here, and the next one is
  // read.
  while (true) {
    body_in_place_ = {};
    if (const auto error = co_await read_next(header, timeout)) co_return error;
    if (!memory_ || header.kind != memory_->negotiates_with()) co_return accept(header);
    if (const auto failed = co_await negotiate(header, timeout)) co_return failed;
  }
}

asio::awaitable<std::error_code> ServerConnection::read_next(FrameHeader& header,
                                                             std::chrono::milliseconds timeout) {
  return memory_ && memory_->may_have_mailbox() ? read_either(header, timeout)
                                                : reader_.read_header(header, timeout);
}

asio::awaitable<std::error_code> ServerConnection::read_body(std::span<std::byte> body,
                                                             std::chrono::milliseconds timeout) {
  return body_in_place_.bytes.empty() ? reader_.read_body(body, timeout) : copy_body(body);
}

// A body in shared memory leaves nothing to skip in the socket.
asio::awaitable<std::error_code> ServerConnection::discard_body(std::uint64_t bytes,
                                                                std::chrono::milliseconds timeout) {
  return reader_.discard_body(body_in_place_.bytes.empty() ? bytes : 0, timeout);
}

// ---------------------------------------------------------------------------------------- writing

void ServerConnection::send(FrameHeader header, std::vector<std::byte> owned) {
  Queued frame;
  frame.owned = std::move(owned);
  enqueue(header, std::move(frame));
}

void ServerConnection::enqueue(FrameHeader header, Queued frame) {
  if (state_ != State::kOpen) return;
  // A body in shared memory has no bytes on the socket, and its header already has the size.
  if ((header.flags & kFlagInPlace) == 0) header.body_size = frame.body().size();
  // Recorded before the write: no header may overtake this frame through the mailbox.
  if (memory_) memory_->sends(header);
  encode_header(header, frame.header);
  if (queue_.empty()) {
    // An empty queue: tries the socket at once, which mostly takes the whole frame.
    // A send has no result. The coroutine that reads gets the error of the closed connection.
    if (write_now(frame)) {
      close();
      return;
    }
    if (frame.complete()) return;
    // A peer that does not read must not make this process buffer without limit. It connects again
    // and continues from its own state.
  } else if (queued_bytes_ + frame.cost() > limits_.max_queued_bytes) {
    close();
    return;
  }
  queued_bytes_ += frame.cost();
  queue_.push_back(std::move(frame));
  if (!writing_) start_writer();
}

// Writes what the socket takes now. Without an error the frame may still be incomplete.
std::error_code ServerConnection::write_now(Queued& frame) {
  while (!frame.complete()) {
    std::error_code error;
    frame.sent += reader_.stream().write_now(frame.unsent(), error);
    if (error == asio::error::would_block) return {};
    if (error) return error;
  }
  return {};
}

void ServerConnection::start_writer() {
  writing_ = true;
  // The callable keeps this object alive as long as the coroutine runs.
  spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->write_queue(); },
      // Out of memory: closing makes the peer see a lost connection.
      [self = shared_from_this()](const std::exception_ptr&) { self->close(); });
}

asio::awaitable<void> ServerConnection::write_queue() {
  while (state_ != State::kClosed && !queue_.empty()) {
    Queued& frame = queue_.front();  // push_back does not move it
    // The time limit applies to each write that makes progress, not to the whole frame, because a
    // large frame on a slow link is not an error.
    write_deadline_ = std::chrono::steady_clock::now() + limits_.write_timeout;
    watch(write_deadline_);
    const auto [error, count] = co_await reader_.stream().write_some(frame.unsent());
    if (state_ == State::kClosed) break;
    if (error == asio::error::would_block) continue;
    if (error) {
      close();
      break;
    }
    frame.sent += count;
    if (!frame.complete()) continue;
    queued_bytes_ -= frame.cost();
    queue_.pop_front();
  }
  write_deadline_ = kNever;
  writing_ = false;
  if (state_ == State::kClosed) queue_.clear();
  wake_drain_waiters();
}

asio::awaitable<bool> ServerConnection::drained(std::chrono::milliseconds timeout) {
  if (state_ == State::kClosed) co_return false;
  if (queue_.empty()) co_return true;
  // The destructor removes it from the list even if the io_context is destroyed first.
  struct Waiter {
    Waiter(std::vector<asio::steady_timer*>& waiters, asio::steady_timer timer_to_wake)
        : list(waiters), timer(std::move(timer_to_wake)) {
      list.push_back(&timer);
    }
    ~Waiter() { std::erase(list, &timer); }
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    std::vector<asio::steady_timer*>& list;
    asio::steady_timer timer;
  };
  Waiter waiter(drain_waiters_, asio::steady_timer(socket_.get_executor(), timeout));
  // Checks again after each wake: a new frame may have been queued meanwhile.
  while (state_ != State::kClosed && !queue_.empty() &&
         std::chrono::steady_clock::now() < waiter.timer.expiry()) {
    co_await waiter.timer.async_wait(kAsTuple);
  }
  co_return state_ != State::kClosed&& queue_.empty();
}

void ServerConnection::wake_drain_waiters() {
  for (asio::steady_timer* timer : drain_waiters_) timer->cancel();
}

// ---------------------------------------------------------------------------------------- the end

void ServerConnection::refuse(const Refusal& refusal, std::uint64_t request_id) {
  send(RefusedFrame{request_id}.to_header(), encode(refusal));
  finish();
}

void ServerConnection::finish() {
  if (state_ != State::kOpen) return;
  state_ = State::kFinishing;
  // The handler closes the socket however linger() ends: peer gone, time over, or no memory.
  asio::co_spawn(
      socket_.get_executor(), [self = shared_from_this()] { return self->linger(); },
      [self = shared_from_this()](const std::exception_ptr&) { self->close(); });
}

// Closing with unread bytes makes the kernel send a reset, which may destroy what the peer has not
// yet read of the last frame. Therefore: stop sending, discard what arrives, and close when the
// peer hangs up or the time is over.
asio::awaitable<void> ServerConnection::linger() {
  linger_deadline_ = std::chrono::steady_clock::now() + limits_.linger;
  watch(linger_deadline_);
  // The refusal must reach the peer before the sending side is shut down.
  if (!co_await drained(limits_.linger)) co_return;
  std::error_code error;
  socket_.cancel(error);  // ends the owner's pending read; no write is pending
  reader_.stream().finish();
  socket_.shutdown(tcp::socket::shutdown_send, error);
  std::vector<std::byte> sink(kDiscardBytes);
  while (state_ == State::kFinishing && std::chrono::steady_clock::now() < linger_deadline_) {
    const auto [read_error, count] =
        co_await socket_.async_read_some(asio::buffer(sink.data(), sink.size()), kAsTuple);
    if (read_error) co_return;
  }
}

void ServerConnection::close() noexcept {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  // Headers that the peer leaves from here on are not handed off.
  if (memory_) memory_->take_no_more();
  // Sends close_notify, so the peer can distinguish an end from a truncation.
  reader_.stream().finish();
  std::error_code ignored;  // the descriptor is closed either way
  socket_.close(ignored);
  timer_.cancel();
  wake_drain_waiters();
  // The writer clears the queue itself, because its operation still refers to the first frame's
  // bytes.
  if (!writing_) queue_.clear();
  // Last: the listener may accept another connection at once, so the descriptor has to be closed.
  slot_.reset();
}

// This process was stopped for a while, and the peer may have been, too. The peer gets its whole
// time again, but only once, so that a dead peer is detected however often that happens.
void ServerConnection::excuse() {
  const TimePoint now = std::chrono::steady_clock::now();
  // An unauthenticated peer gets no extra time, because handshakes limit how long it can occupy a
  // connection.
  if (is_excused_ || handshake_deadline_ != kNever) return;
  is_excused_ = true;
  if (read_deadline_ != kNever) read_deadline_ = now + read_timeout_;
  if (write_deadline_ != kNever) write_deadline_ = now + limits_.write_timeout;
}

// Makes sure that the timer fires at or before `deadline`.
void ServerConnection::watch(TimePoint deadline) {
  if (deadline >= timer_at_) return;
  timer_at_ = deadline;
  timer_.expires_at(deadline);
  // A weak pointer, because a pending timer must not keep a connection that has ended.
  timer_.async_wait([weak = weak_from_this()](std::error_code error) {
    if (error) return;  // moved to an earlier time, or closed
    if (const auto self = weak.lock()) self->on_timer();
  });
}

void ServerConnection::on_timer() {
  const TimePoint armed_for = std::exchange(timer_at_, kNever);
  if (state_ == State::kClosed) return;
  if (suspended_for(armed_for) > Clock::duration::zero()) excuse();
  // The timer may be early, because deadlines are moved without re-arming it.
  const TimePoint due = std::min({read_deadline_, write_deadline_, linger_deadline_});
  if (due > std::chrono::steady_clock::now()) {
    watch(due);
    return;
  }
  // A peer that is being refused already has a reason; the end of lingering does not replace it.
  timed_out_ = state_ == State::kOpen;
  close();
}

}  // namespace disttf::net
