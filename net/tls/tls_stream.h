// TLS 1.3 over a non-blocking socket, between two tasks that authenticate each other by the
// credentials of their run (net/tls/credentials.h). No tickets, no early data, no older
// version, and no fallback to plain text.
//
// Use by one thread at a time. The socket stays its owner's, which waits for it after would_block
// and closes it after any other error.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "net/tls/credentials.h"
#include "net/tls/tls_error.h"
#include "net/tls/tls_socket.h"
#include "net/wire/frame.h"

using SSL = struct ssl_st;

namespace disttf::net {

class TlsStream {
 public:
  // `credentials` must outlive it. nullptr: out of memory.
  // Without `reads_ahead` it takes from the socket only what belongs to the frame that is being
  // read, so that poll() reports further data. This requires that the peer begins no frame in the
  // middle of a record, and write_some() does not.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(int fd, Credentials& credentials,
                                                          const Hello& hello,
                                                          bool reads_ahead = false);
  // Takes all available bytes, as connect() does with `reads_ahead`: see inbox().
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(int fd, Credentials& credentials);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Call again until the result is not would_block.
  [[nodiscard]] std::error_code shake_hands();
  // REQUIRES: `into` is at most the rest of the frame.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& error);
  // Writes what follows after `sent` bytes of header and body, several records at once. Returns how
  // many bytes the kernel has taken. After would_block, call again with the same bytes, or the same
  // and more.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> header,
                                       std::span<const std::byte> body, std::size_t sent,
                                       std::error_code& error);
  // The event that would_block waits for: POLLIN or POLLOUT.
  [[nodiscard]] short waits_for() const noexcept { return waits_for_; }
  // Whether there is data to read that poll() does not report.
  [[nodiscard]] bool has_bytes() const noexcept;
  // Sends close_notify if the socket takes it at once, so that the peer can tell the end from a
  // cut.
  void finish() noexcept;

  // For a caller that waits by reading: inbox() is where bytes of the socket may be put, and
  // received() tells how many were. REQUIRES: reads_ahead, would_block was just returned, and
  // waits_for() is POLLIN.
  [[nodiscard]] std::span<std::byte> inbox() noexcept { return socket_.inbox(); }
  void received(std::size_t bytes) noexcept { socket_.received(bytes); }

  // After the handshake, for the accepting end: why a HELLO from this peer is wrong, as the rest of
  // a sentence about this task; nullopt: it is not.
  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const {
    return proof_->misfit(hello);
  }
  // Whether the peer may send requests to servers as their driver.
  [[nodiscard]] bool may_drive() const { return proof_->may_drive(); }
  // Details of a handshake error; `self`: this task. Empty: there are none.
  [[nodiscard]] std::string detail(std::error_code error, const std::string& self) const {
    return proof_->detail(error, self);
  }

 private:
  TlsStream(int fd, std::unique_ptr<Proof> proof, bool reads_ahead)
      : proof_(std::move(proof)), socket_(fd, reads_ahead) {}
  [[nodiscard]] bool make(bool accepts);
  [[nodiscard]] std::size_t write_record(std::span<const std::byte> header,
                                         std::span<const std::byte> body, std::size_t sent,
                                         std::error_code& error);
  // Returns `error` once the kernel has what OpenSSL has written.
  [[nodiscard]] std::error_code flushed(std::error_code error) noexcept;
  [[nodiscard]] std::error_code failure(int result);
  [[nodiscard]] std::error_code why_failed();

  const std::unique_ptr<Proof> proof_;
  TlsSocket socket_;
  SSL* ssl_ = nullptr;
  short waits_for_ = 0;
  bool is_shaken_ = false;
  bool has_failed_ = false;
  std::size_t gathered_ = 0;  // bytes of a frame that the socket had no room for
};

}  // namespace disttf::net
