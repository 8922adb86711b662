// The bytes of a connection, plain or through TLS (net/tls/tls_stream.h), over a non-blocking
// socket. The socket stays its owner's, which closes it after an error.
#pragma once

#include <array>
#include <asio/awaitable.hpp>
#include <asio/buffer.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <span>
#include <system_error>
#include <tuple>

namespace disttf::net {

// What follows after the first `sent` bytes of a frame, at most all of them.
struct UnsentFrame {
  std::span<const std::byte> header;
  std::span<const std::byte> body;
  std::size_t sent = 0;
  // For one gathering write: header and body leave in one system call, and the body is not copied.
  [[nodiscard]] std::array<asio::const_buffer, 2> buffers() const noexcept;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  // Reads what has arrived; writes what the socket takes. Both return the number of bytes. After
  // would_block, call again when the socket has the event waits_for(), and write the same bytes, or
  // the same and more.
  [[nodiscard]] virtual std::size_t read_now(std::span<std::byte> into, std::error_code& error) = 0;
  [[nodiscard]] virtual std::size_t write_now(const UnsentFrame& frame, std::error_code& error) = 0;
  // POLLIN or POLLOUT; `event` is the one of a plain socket.
  [[nodiscard]] virtual short waits_for(short event) const noexcept = 0;
  // Whether there is data to read that poll() does not report.
  [[nodiscard]] virtual bool has_bytes() const noexcept = 0;
  // Lets the peer tell the end from a truncation, if the socket takes that at once.
  virtual void finish() noexcept = 0;

  // The same for the coroutines of an event loop, which wait. would_block, from write_some() alone:
  // call again.
  using Transfer = asio::awaitable<std::tuple<std::error_code, std::size_t>>;
  [[nodiscard]] virtual Transfer read_some(std::span<std::byte> into) = 0;
  [[nodiscard]] virtual Transfer write_some(UnsentFrame frame) = 0;

 protected:
  explicit ByteStream(asio::ip::tcp::socket& socket) noexcept : socket_(socket) {}
  [[nodiscard]] asio::ip::tcp::socket& socket() const noexcept { return socket_; }

 private:
  asio::ip::tcp::socket& socket_;
};

class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(asio::ip::tcp::socket& socket) noexcept : ByteStream(socket) {}

  [[nodiscard]] std::size_t read_now(std::span<std::byte> into, std::error_code& error) override;
  [[nodiscard]] std::size_t write_now(const UnsentFrame& frame, std::error_code& error) override;
  [[nodiscard]] short waits_for(short event) const noexcept override { return event; }
  [[nodiscard]] bool has_bytes() const noexcept override { return false; }
  void finish() noexcept override {}
  [[nodiscard]] Transfer read_some(std::span<std::byte> into) override;
  [[nodiscard]] Transfer write_some(UnsentFrame frame) override;
};

}  // namespace disttf::net
