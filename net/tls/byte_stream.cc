#include "net/tls/byte_stream.h"

#include <poll.h>

#include <algorithm>
#include <asio/error.hpp>

#include "net/tls/tls_stream.h"
#include "net/waiting/as_tuple.h"

namespace disttf::net {

using asio::ip::tcp;

std::array<asio::const_buffer, 2> UnsentFrame::buffers() const noexcept {
  const auto header_left = header.subspan(std::min(sent, header.size()));
  const auto body_left = body.subspan(sent - std::min(sent, header.size()));
  return {asio::buffer(header_left.data(), header_left.size()),
          asio::buffer(body_left.data(), body_left.size())};
}

std::size_t PlainStream::read_now(std::span<std::byte> into, std::error_code& error) {
  return socket().read_some(asio::buffer(into.data(), into.size()), error);
}

std::size_t PlainStream::write_now(const UnsentFrame& frame, std::error_code& error) {
  return socket().write_some(frame.buffers(), error);
}

ByteStream::Transfer PlainStream::read_some(std::span<std::byte> into) {
  return socket().async_read_some(asio::buffer(into.data(), into.size()), kAsTuple);
}

ByteStream::Transfer PlainStream::write_some(UnsentFrame frame) {
  return socket().async_write_some(frame.buffers(), kAsTuple);
}

// -------------------------------------------------------------------------------- through TLS

// Also a descriptor that was closed while the wait had ended already must not be used any more: it
// may be another connection's.
asio::awaitable<std::error_code> TlsStream::wait() {
  std::error_code error;
  // TLS may need to write before it can read, for example a key update.
  if (waits_for_ == POLLOUT) {
    std::tie(error) = co_await socket().async_wait(tcp::socket::wait_write, kAsTuple);
  } else {
    std::size_t count = 0;
    const auto inbox = tls_socket_.inbox();
    std::tie(error, count) =
        co_await socket().async_read_some(asio::buffer(inbox.data(), inbox.size()), kAsTuple);
    tls_socket_.received(count);
    if (error == asio::error::eof) error = TlsError::kCut;
  }
  co_return error || socket().is_open() ? error : asio::error::operation_aborted;
}

asio::awaitable<std::error_code> TlsStream::handshake() {
  std::error_code error = shake_hands();
  while (error == asio::error::would_block) {
    error = co_await wait();
    // A peer that ends here only probed the port, or has no TLS. That is an end, not a truncation.
    if (error == TlsError::kCut) error = asio::error::eof;
    if (!error) error = shake_hands();
  }
  co_return error;
}

// TLS may hold decrypted bytes that the socket no longer shows, so it is read before any wait for
// the socket.
ByteStream::Transfer TlsStream::read_some(std::span<std::byte> into) {
  std::error_code error;
  std::size_t received = read_now(into, error);
  while (error == asio::error::would_block) {
    error = co_await wait();
    if (!error) received = read_now(into, error);
  }
  co_return std::tuple(error, received);
}

ByteStream::Transfer TlsStream::write_some(UnsentFrame frame) {
  auto [error] = co_await socket().async_wait(tcp::socket::wait_write, kAsTuple);
  if (!error && !socket().is_open()) error = asio::error::operation_aborted;
  const std::size_t count = error ? 0 : write_now(frame, error);
  co_return std::tuple(error, count);
}

}  // namespace disttf::net
