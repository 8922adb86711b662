// TLS 1.3 over a non-blocking socket, between two tasks that authenticate each other by the
// credentials of their run (net/tls/credentials.h). No tickets, no early data, no older
// version, and no fallback to plain text.
//
// Use by one thread at a time.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "net/tls/byte_stream.h"
#include "net/tls/credentials.h"
#include "net/tls/tls_error.h"
#include "net/tls/tls_socket.h"
#include "net/wire/frame.h"

using SSL = struct ssl_st;

namespace disttf::net {

class TlsStream final : public ByteStream {
 public:
  // `credentials` must outlive it. nullptr: out of memory.
  // Without `reads_ahead` it takes from the socket only what belongs to the frame that is being
  // read, so that poll() reports further data. This requires that the peer begins no frame in the
  // middle of a record, and write_now() does not.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(asio::ip::tcp::socket& socket,
                                                          Credentials& credentials,
                                                          const Hello& hello,
                                                          bool reads_ahead = false);
  // Takes all available bytes, as connect() does with `reads_ahead`.
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(asio::ip::tcp::socket& socket,
                                                         Credentials& credentials);
  ~TlsStream() override;
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // Call again until the result is not would_block.
  [[nodiscard]] std::error_code shake_hands();
  // The same for a coroutine, which waits. REQUIRES: reads_ahead, as all coroutines do.
  [[nodiscard]] asio::awaitable<std::error_code> handshake();

  // REQUIRES: `into` is at most the rest of the frame.
  [[nodiscard]] std::size_t read_now(std::span<std::byte> into, std::error_code& error) override;
  // Writes several records at once.
  [[nodiscard]] std::size_t write_now(const UnsentFrame& frame, std::error_code& error) override;
  [[nodiscard]] short waits_for(short /*event*/) const noexcept override { return waits_for_; }
  [[nodiscard]] bool has_bytes() const noexcept override;
  void finish() noexcept override;  // sends close_notify
  [[nodiscard]] Transfer read_some(std::span<std::byte> into) override;
  [[nodiscard]] Transfer write_some(UnsentFrame frame) override;

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
  TlsStream(asio::ip::tcp::socket& socket, std::unique_ptr<Proof> proof, bool reads_ahead)
      : ByteStream(socket),
        proof_(std::move(proof)),
        tls_socket_(socket.native_handle(), reads_ahead) {}
  [[nodiscard]] bool make(bool accepts);
  // Waits until TLS can continue. Bytes that were waited for are in its inbox then.
  [[nodiscard]] asio::awaitable<std::error_code> wait();
  [[nodiscard]] std::size_t write_record(const UnsentFrame& frame, std::error_code& error);
  // Returns `error` once the kernel has what OpenSSL has written.
  [[nodiscard]] std::error_code flushed(std::error_code error) noexcept;
  [[nodiscard]] std::error_code failure(int result);
  [[nodiscard]] std::error_code why_failed();

  const std::unique_ptr<Proof> proof_;
  TlsSocket tls_socket_;
  SSL* ssl_ = nullptr;
  short waits_for_ = 0;
  bool is_shaken_ = false;
  bool has_failed_ = false;
  std::size_t gathered_ = 0;  // bytes of a frame that the socket had no room for
};

}  // namespace disttf::net
