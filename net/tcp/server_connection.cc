#include "net/tcp/server_connection.h"

#include <poll.h>

#include <algorithm>
#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <exception>
#include <tuple>
#include <utility>

#include "net/tcp/as_tuple.h"
#include "net/tcp/gather.h"
#include "net/tcp/resolve.h"
#include "net/tcp/same_host.h"
#include "net/tcp/spawn.h"
#include "net/waiting/interrupt.h"
#include "net/waiting/spin_then_park.h"
#include "net/wire/address.h"
#include "net/wire/messages.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;
// Buffer size for discarded bytes.
constexpr std::size_t kDiscardBytes = 16 * 1024;

}  // namespace

ServerConnection::ServerConnection(tcp::socket socket, ConnectionLimits limits,
                                   std::shared_ptr<const void> slot)
    : socket_(std::move(socket)),
      limits_(limits),
      slot_(std::move(slot)),
      endpoint_text_(peer_endpoint_text(socket_.native_handle())),
      peer_text_(endpoint_text_),
      either_(socket_.get_executor(), asio::steady_timer::time_point::max()),
      timer_(socket_.get_executor()) {
  std::error_code ignored;  // fail only when the peer has gone; the first read reports that
  socket_.non_blocking(true, ignored);
  // Replies are written in one piece, so waiting to fill a segment would only add delay.
  socket_.set_option(tcp::no_delay(true), ignored);
  socket_.set_option(asio::socket_base::keep_alive(true), ignored);
  if (is_loopback(socket_.local_endpoint(ignored).address())) send_unpaced(socket_.native_handle());
}

ServerConnection::~ServerConnection() = default;

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

void ServerConnection::begin_read(std::chrono::milliseconds timeout) {
  // During the handshake its deadline limits every read, so a peer cannot extend it byte by byte.
  read_deadline_ = handshake_deadline_;
  read_timeout_ = timeout;
  if (timeout > std::chrono::milliseconds::zero()) {
    read_deadline_ = std::min(read_deadline_, std::chrono::steady_clock::now() + timeout);
  }
  watch(read_deadline_);
}

asio::awaitable<std::error_code> ServerConnection::read_some(std::span<std::byte> buffer,
                                                             std::size_t& received,
                                                             std::chrono::milliseconds timeout) {
  received = 0;
  if (state_ != State::kOpen) co_return read_failed({});
  begin_read(timeout);
  std::error_code error;
  if (tls_) {
    received = tls_->read_some(buffer, error);
    // TLS may hold decrypted bytes that the socket no longer shows, so it is read before any wait
    // for the socket.
    while (error == asio::error::would_block && state_ == State::kOpen) {
      error = co_await await_tls();
      if (!error && state_ == State::kOpen) received = tls_->read_some(buffer, error);
    }
  } else {
    std::tie(error, received) =
        co_await socket_.async_read_some(asio::buffer(buffer.data(), buffer.size()), kAsTuple);
  }
  // The deadline is cleared but the timer stays armed: re-arming it for every read would cost more
  // than one unneeded expiry.
  read_deadline_ = kNever;
  // Bytes that arrived after refuse() are discarded.
  if (error || state_ != State::kOpen) co_return read_failed(error);
  // TLS may hold further decrypted bytes, which a wait for the socket would not show.
  may_have_bytes_ = tls_ != nullptr;
  is_excused_ = false;
  co_return std::error_code{};
}

asio::awaitable<std::error_code> ServerConnection::await_tls() {
  // TLS may need to write before it can read, for example a key update.
  if (tls_->waits_for() == POLLOUT) {
    const auto [error] = co_await socket_.async_wait(tcp::socket::wait_write, kAsTuple);
    co_return error;
  }
  const auto inbox = tls_->inbox();
  const auto [error, count] =
      co_await socket_.async_read_some(asio::buffer(inbox.data(), inbox.size()), kAsTuple);
  tls_->received(count);
  co_return error == asio::error::eof ? make_error_code(TlsError::kCut) : error;
}

std::size_t ServerConnection::read_now(std::span<std::byte> body, std::error_code& error) {
  return tls_ ? tls_->read_some(body, error)
              : socket_.read_some(asio::buffer(body.data(), body.size()), error);
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
  tls_ = TlsStream::accept(socket_.native_handle(), credentials);
  co_return co_await shake_hands();
}

asio::awaitable<std::error_code> ServerConnection::connect_tls(Credentials& credentials,
                                                               const Hello& hello) {
  tls_ = TlsStream::connect(socket_.native_handle(), credentials, hello, true /* reads ahead */);
  co_return co_await shake_hands();
}

asio::awaitable<std::error_code> ServerConnection::shake_hands() {
  if (!tls_) co_return read_failed(std::make_error_code(std::errc::not_enough_memory));
  read_deadline_ = handshake_deadline_;
  watch(read_deadline_);
  std::error_code error = tls_->shake_hands();
  while (error == asio::error::would_block && state_ == State::kOpen) {
    error = co_await await_tls();
    // A peer that ends here only probed the port, or has no TLS. That is an end, not a truncation.
    if (error == TlsError::kCut) error = asio::error::eof;
    if (!error && state_ == State::kOpen) error = tls_->shake_hands();
  }
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

asio::awaitable<std::error_code> ServerConnection::read_header(FrameHeader& header,
                                                               std::chrono::milliseconds timeout) {
  // Until a frame is the owner's: SHARE and SHARED are handled here, and the next one is read.
  for (bool is_own = true; is_own;) {
    body_in_place_ = {};
    // After a header from the mailbox other coroutines get a turn first, as they do when a read
    // waits.
    if (std::exchange(was_in_memory_, false) && has_left_header()) {
      co_await asio::post(socket_.get_executor(), asio::use_awaitable);
      if (state_ != State::kOpen) co_return read_failed({});
    }
    if (has_left_header()) {
      is_excused_ = false;
      was_in_memory_ = true;
      if (const auto error = take_left_header(header)) co_return read_failed(error);
      break;
    }
    if (kept_) {
      header = *std::exchange(kept_, std::nullopt);
      // The mailbox may have been filled while this read waits on the socket, so the read can end
      // with "interrupted" and start over.
    } else {
      const auto error = co_await read_frame_header(header, timeout);
      // A header in the mailbox has ended the wait. The next round takes it.
      if (error == asio::error::interrupted) continue;
      if (error) co_return error;
      // A header in the mailbox was left before the frame arrived: it is read first.
      if (has_left_header()) {
        kept_ = header;
        continue;
      }
    }
    std::error_code error;
    is_own = co_await take_own(header, timeout, error);
    if (error) co_return error;
  }
  // The slot of a body becomes free before the owner handles the ACK, so the owner may send the
  // next body at once.
  if (slots_ && is_bodiless<Ack>(header)) slots_->done(header.request_id);
  if ((header.flags & kFlagInPlace) == 0) co_return std::error_code{};
  // Sent over an earlier connection and arrived late. The sender must not exit for that: it
  // connects again.
  if (!in_place_) co_return read_failed(WireError::kUnexpected);
  if (!find_body(header)) {
    co_return refuse_read(header, "a gradient in memory that is not shared");
  }
  co_return std::error_code{};
}

asio::awaitable<std::error_code> ServerConnection::read_frame_header(
    FrameHeader& header, std::chrono::milliseconds timeout) {
  std::array<std::byte, kHeaderBytes> bytes{};
  // Between two requests there is mostly nothing to read yet, so it waits without a try first.
  std::size_t received = 0;
  const auto failed = in_place_ || slots_ ? co_await read_unless_left(bytes, received, timeout)
                                          : co_await read_some(bytes, received, timeout);
  if (failed) co_return failed;
  // The header has begun, so its rest is due now and is read with the spin of read_body().
  const auto rest = std::span(bytes).subspan(received);
  if (const auto error = co_await read_body(rest, timeout)) co_return error;
  const auto error = decode_header(bytes, header);
  co_return error ? read_failed(error) : error;
}

std::error_code ServerConnection::refuse_read(const FrameHeader& header, const char* sentence) {
  refused_with_ = sentence;
  refuse({.exit_code = kExitError, .sentence = sentence}, header.request_id);
  return std::make_error_code(std::errc::operation_canceled);
}

asio::awaitable<std::error_code> ServerConnection::read_first_header(FrameHeader& header) {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::size_t have = 0;
  // Bytes are checked as they arrive: a wrong peer is closed at its first wrong byte, not after
  // the handshake time.
  while (have < bytes.size()) {
    std::size_t received = 0;
    const auto rest = std::span(bytes).subspan(have);
    if (const auto error = co_await read_some(rest, received, {})) co_return error;
    have += received;
    const auto first = std::span<const std::byte>(bytes).first(have);
    if (!tls_ && begins_tls(first)) {
      if (have >= kTlsBeginning) co_return TlsError::kNotSpoken;
      continue;
    }
    if (!may_be_frame(first)) co_return read_failed(WireError::kBadMagic);
  }
  const auto error = decode_header(bytes, header);
  if (!error || error == WireError::kBadVersion) co_return error;
  co_return read_failed(error);
}

asio::awaitable<std::error_code> ServerConnection::read_body(std::span<std::byte> body,
                                                             std::chrono::milliseconds timeout) {
  if (!body_in_place_.bytes.empty()) {
    const std::size_t part = std::min(body.size(), body_in_place_.bytes.size());
    const auto here = body_in_place_.bytes.first(part);
    std::copy(here.begin(), here.end(), body.begin());
    body_in_place_.bytes = body_in_place_.bytes.subspan(part);
    co_return part == body.size() ? std::error_code{} : read_failed(WireError::kBadBody);
  }
  // The rest of a frame mostly arrives within microseconds of its beginning, so a short spin saves
  // a sleep and a wake.
  const TimePoint spin_until = std::chrono::steady_clock::now() + kFrameSpinTime;
  while (!body.empty()) {
    // Takes bytes that have arrived already without a turn through the scheduler.
    if (state_ != State::kOpen) co_return read_failed({});
    std::error_code error;
    std::size_t received = read_now(body, error);
    if (error == asio::error::would_block) {
      if (yield_until(spin_until)) continue;
      error = co_await read_some(body, received, timeout);
      if (error) co_return error;
    }
    if (error) co_return read_failed(error);
    body = body.subspan(received);
  }
  co_return std::error_code{};
}

asio::awaitable<std::error_code> ServerConnection::discard_body(std::uint64_t bytes,
                                                                std::chrono::milliseconds timeout) {
  // The body lies in shared memory, so there is nothing to skip in the socket.
  if (!body_in_place_.bytes.empty()) co_return std::error_code{};
  // Only asynchronous reads: a peer may announce any number of bytes, and other coroutines need
  // turns.
  std::vector<std::byte> sink(std::min<std::uint64_t>(bytes, kDiscardBytes));
  while (bytes > 0) {
    std::size_t received = 0;
    const auto part = std::span(sink).first(std::min<std::uint64_t>(bytes, sink.size()));
    if (const auto error = co_await read_some(part, received, timeout)) co_return error;
    bytes -= received;
  }
  co_return std::error_code{};
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
  if (slots_) slots_->sends(header);
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
    frame.sent += tls_ ? tls_->write_some(frame.header, frame.body(), frame.sent, error)
                       : socket_.write_some(unsent(frame.header, frame.body(), frame.sent), error);
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
    std::error_code error;
    std::size_t count = 0;
    if (tls_) {
      std::tie(error) = co_await socket_.async_wait(tcp::socket::wait_write, kAsTuple);
      if (state_ == State::kClosed) break;
      if (!error) count = tls_->write_some(frame.header, frame.body(), frame.sent, error);
      if (error == asio::error::would_block) continue;
    } else {
      std::tie(error, count) = co_await socket_.async_write_some(
          unsent(frame.header, frame.body(), frame.sent), kAsTuple);
    }
    if (state_ == State::kClosed) break;
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
  if (tls_) tls_->finish();
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
  if (in_place_) in_place_->take_no_more();
  // Sends close_notify, so the peer can distinguish an end from a truncation.
  if (tls_) tls_->finish();
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
