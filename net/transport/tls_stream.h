// TLS 1.3 over a socket that does not block, between two tasks that know each other by the
// credentials of their run (net/transport/credentials.h). No tickets, no early data, no older
// version, and no way back to without.
//
// One thread at a time. The socket stays its owner's, who waits for it where an error is
// would_block, and closes it after any other.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "net/transport/credentials.h"
#include "net/transport/tls_error.h"
#include "net/transport/tls_socket.h"
#include "net/wire/frame.h"

using SSL = struct ssl_st;

namespace disttf::net {

class TlsStream {
 public:
  // `credentials` must outlive it. nullptr: out of memory.
  // Without `reads_ahead` it takes from the socket what belongs to the frame that is being read and
  // no more, so that poll() tells whether there is something to read: as long as the peer begins no
  // frame in the middle of a record, as write_some() does not.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(int fd, Credentials& credentials,
                                                          const Hello& hello,
                                                          bool reads_ahead = false);
  // Takes all that is there, as connect() does where it `reads_ahead`: see inbox().
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(int fd, Credentials& credentials);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // To be called again until it is not would_block.
  [[nodiscard]] std::error_code shake_hands();
  // REQUIRES: `into` is not more than what is to come of the frame.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& error);
  // Of a frame, what follows after `sent` bytes of header and body: some records of it at once.
  // What it returns is in the kernel's hands. After would_block, again with the same bytes, or the
  // same and more.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> header,
                                       std::span<const std::byte> body, std::size_t sent,
                                       std::error_code& error);
  // What would_block waits for: POLLIN or POLLOUT.
  [[nodiscard]] short waits_for() const noexcept { return waits_for_; }
  // There is something to read that poll() does not know of.
  [[nodiscard]] bool has_bytes() const noexcept;
  // Says farewell if the socket takes it at once: the peer knows then that nothing was cut off.
  void finish() noexcept;

  // For whoever waits by reading: where bytes of the socket may be put, and how many have been.
  // REQUIRES: it reads ahead, would_block was just returned, and waits_for() is POLLIN.
  [[nodiscard]] std::span<std::byte> inbox() noexcept { return socket_.inbox(); }
  void received(std::size_t bytes) noexcept { socket_.received(bytes); }

  // After the handshake, of one who accepts: what is wrong with a HELLO from this peer, as the rest
  // of a sentence about this task; nullopt: nothing.
  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const {
    return proof_->misfit(hello);
  }
  // Whether the peer may order servers about as their driver.
  [[nodiscard]] bool may_drive() const { return proof_->may_drive(); }
  // More about an error of the handshake than its code says; `self`: this task. Empty: there is no
  // more.
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
  // `error`, once what OpenSSL has written is with the kernel.
  [[nodiscard]] std::error_code flushed(std::error_code error) noexcept;
  [[nodiscard]] std::error_code failure(int result);
  [[nodiscard]] std::error_code why_failed();

  const std::unique_ptr<Proof> proof_;
  TlsSocket socket_;
  SSL* ssl_ = nullptr;
  short waits_for_ = 0;
  bool is_shaken_ = false;
  bool has_failed_ = false;
  std::size_t gathered_ = 0;  // bytes of a frame that the socket was too full for
};

}  // namespace disttf::net
