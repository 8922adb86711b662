#include "net/tcp/frame_reader.h"

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <tuple>
#include <vector>

#include "net/tls/tls_error.h"
#include "net/tls/tls_socket.h"
#include "net/waiting/as_tuple.h"
#include "net/waiting/interrupt.h"
#include "net/waiting/spin_then_park.h"

namespace disttf::net {

FrameReader::FrameReader(asio::ip::tcp::socket& socket, Owner& owner)
    : socket_(socket),
      owner_(owner),
      stream_(std::make_unique<PlainStream>(socket)),
      either_(socket.get_executor(), asio::steady_timer::time_point::max()) {}

asio::awaitable<std::error_code> FrameReader::read_some(std::span<std::byte> buffer,
                                                        std::size_t& received,
                                                        std::chrono::milliseconds timeout) {
  received = 0;
  std::error_code error = owner_.begin_wait(timeout);
  if (error) co_return error;
  std::tie(error, received) = co_await stream_->read_some(buffer);
  // Bytes that arrived after a refusal are discarded.
  co_return owner_.end_wait(error);
}

std::error_code FrameReader::decode(std::span<const std::byte, kHeaderBytes> bytes,
                                    FrameHeader& header) {
  const std::error_code error = decode_header(bytes, header);
  return error ? owner_.end_wait(error) : error;
}

asio::awaitable<std::error_code> FrameReader::read_header(FrameHeader& header,
                                                          std::chrono::milliseconds timeout) {
  std::array<std::byte, kHeaderBytes> bytes{};
  // Between two requests there is mostly nothing to read yet, so it waits without a try first.
  std::size_t received = 0;
  if (const auto error = co_await read_some(bytes, received, timeout)) co_return error;
  // The header has begun, so its rest is due now and is read with the spin of read_body().
  const auto rest = std::span(bytes).subspan(received);
  if (const auto error = co_await read_body(rest, timeout)) co_return error;
  co_return decode(bytes, header);
}

asio::awaitable<std::error_code> FrameReader::read_header_unless_left(
    FrameHeader& header, std::chrono::milliseconds timeout) {
  std::array<std::byte, kHeaderBytes> bytes{};
  std::size_t received = 0;
  std::error_code error = owner_.begin_wait(timeout);
  if (error) co_return error;
  error = asio::error::would_block;
  // TLS bytes that came with the last ones would not be reported by the socket.
  for (bool waits = !stream_->has_bytes(); error == asio::error::would_block; waits = true) {
    if (waits) co_await await_either();
    if (!owner_.is_open() || owner_.has_left_header()) break;
    received = stream_->read_now(bytes, error);
  }
  const bool is_left = error == asio::error::would_block;
  error = owner_.end_wait(is_left ? std::error_code{} : error);
  if (error || is_left) co_return error ? error : asio::error::interrupted;
  const auto rest = std::span(bytes).subspan(received);
  if (error = co_await read_body(rest, timeout); error) co_return error;
  co_return decode(bytes, header);
}

// The wait for the socket stays pending while headers come through the mailbox. Cancelling and
// restarting it each time would cost some microseconds of system calls and of OpenSSL.
asio::awaitable<void> FrameReader::await_either() {
  if (!std::exchange(awaits_socket_, true)) {
    socket_.async_wait(asio::ip::tcp::socket::wait_read,
                       [this, lifetime = owner_.lifetime()](std::error_code) {
                         if (lifetime.expired()) return;
                         awaits_socket_ = false;  // the following read reports any error
                         either_.cancel();
                       });
  }
  is_interruptible_ = true;
  while (awaits_socket_ && is_interruptible_) {
    co_await either_.async_wait(kAsTuple);
  }
  is_interruptible_ = false;
}

bool FrameReader::wake() {
  if (!std::exchange(is_interruptible_, false)) return false;
  either_.cancel();
  return true;
}

asio::awaitable<std::error_code> FrameReader::read_first_header(FrameHeader& header,
                                                                bool is_secure) {
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
    if (!is_secure && begins_tls(first)) {
      if (have >= kTlsBeginning) co_return TlsError::kNotSpoken;
      continue;
    }
    if (!may_be_frame(first)) co_return owner_.end_wait(WireError::kBadMagic);
  }
  const auto error = decode_header(bytes, header);
  if (!error || error == WireError::kBadVersion) co_return error;
  co_return owner_.end_wait(error);
}

asio::awaitable<std::error_code> FrameReader::read_body(std::span<std::byte> body,
                                                        std::chrono::milliseconds timeout) {
  // The rest of a frame mostly arrives within microseconds of its beginning, so a short spin saves
  // a sleep and a wake.
  const Deadline spin_until = Clock::now() + kFrameSpinTime;
  while (!body.empty()) {
    // Takes bytes that have arrived already without a turn through the scheduler.
    std::error_code error;
    if (!owner_.is_open()) co_return owner_.end_wait(error);
    std::size_t received = stream_->read_now(body, error);
    if (error == asio::error::would_block) {
      if (yield_until(spin_until)) continue;
      error = co_await read_some(body, received, timeout);
      if (error) co_return error;
    }
    if (error) co_return owner_.end_wait(error);
    body = body.subspan(received);
  }
  co_return std::error_code{};
}

asio::awaitable<std::error_code> FrameReader::discard_body(std::uint64_t bytes,
                                                           std::chrono::milliseconds timeout) {
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

}  // namespace disttf::net
