// Reads the frames of one connection for the coroutines of an event loop, from its ByteStream.
//
// One read at a time. `timeout` limits the time without a byte, counted from the call and again
// from each byte; zero waits forever.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "net/tls/byte_stream.h"
#include "net/wire/frame.h"

namespace disttf::net {

class FrameReader {
 public:
  // The connection that reads. Its reader belongs to it.
  class Owner {
   public:
    // Starts the timeout of a wait. An error: the connection is closed, or about to be.
    [[nodiscard]] virtual std::error_code begin_wait(std::chrono::milliseconds timeout) = 0;
    // Ends the timeout. Returns how the read ends: with `error`, after which it closes the
    // connection, or because that was closed or refused meanwhile.
    [[nodiscard]] virtual std::error_code end_wait(std::error_code error) noexcept = 0;
    [[nodiscard]] virtual bool is_open() const noexcept = 0;
    // Whether a header is in a mailbox, and is to be read first.
    [[nodiscard]] virtual bool has_left_header() const noexcept = 0;
    // Expires with the connection.
    [[nodiscard]] virtual std::weak_ptr<const void> lifetime() noexcept = 0;

   protected:
    ~Owner() = default;
  };
  FrameReader(asio::ip::tcp::socket& socket, Owner& owner);

  // Plain, until another one is used.
  [[nodiscard]] ByteStream& stream() noexcept { return *stream_; }
  void use(std::unique_ptr<ByteStream> stream) noexcept { stream_ = std::move(stream); }

  // Reads the next header.
  asio::awaitable<std::error_code> read_header(FrameHeader& header,
                                               std::chrono::milliseconds timeout);
  // The same. asio::error::interrupted: nothing has arrived, but a header is in the mailbox.
  asio::awaitable<std::error_code> read_header_unless_left(FrameHeader& header,
                                                           std::chrono::milliseconds timeout);
  // Called when a header is in the mailbox. Returns whether it will be read now.
  bool wake();
  // Reads the first frame's header, but returns kBadMagic as soon as a byte shows that it is no
  // frame. On kBadVersion, and on TlsError::kNotSpoken (TLS to a task without it, which is not
  // `is_secure`), the connection stays open for a refusal.
  asio::awaitable<std::error_code> read_first_header(FrameHeader& header, bool is_secure);
  // Reads exactly body.size() bytes.
  asio::awaitable<std::error_code> read_body(std::span<std::byte> body,
                                             std::chrono::milliseconds timeout);
  // Reads and discards `bytes` bytes.
  asio::awaitable<std::error_code> discard_body(std::uint64_t bytes,
                                                std::chrono::milliseconds timeout);

 private:
  // Waits for bytes, and reads as many as there are.
  asio::awaitable<std::error_code> read_some(std::span<std::byte> buffer, std::size_t& received,
                                             std::chrono::milliseconds timeout);
  // Waits until bytes arrive over the socket or a header is in the mailbox.
  asio::awaitable<void> await_either();
  [[nodiscard]] std::error_code decode(std::span<const std::byte, kHeaderBytes> bytes,
                                       FrameHeader& header);

  asio::ip::tcp::socket& socket_;
  Owner& owner_;
  std::unique_ptr<ByteStream> stream_;
  asio::steady_timer either_;      // never expires: cancelled to wake the reader
  bool is_interruptible_ = false;  // the reader waits for either source
  bool awaits_socket_ = false;     // a wait for the socket is pending
};

// Buffer size for discarded bytes.
inline constexpr std::size_t kDiscardBytes = 16 * 1024;

}  // namespace disttf::net
