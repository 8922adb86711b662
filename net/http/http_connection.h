// The connection of an HTTP client: TCP, optionally TLS, or a Unix socket. Every operation is
// bounded by a deadline and the interrupt.
//
// Synchronous: each call runs the connection's own io_context on the calling thread until the one
// operation is over. Not thread-safe. Errors: std::errc::timed_out, std::errc::operation_canceled
// (interrupt), HttpError for TLS, asio::error::eof (the peer closed) or a system error. The
// connection is closed after the first two; after others it can still be read.
#pragma once

#include <asio/generic/stream_protocol.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/ssl/context.hpp>
#include <asio/ssl/stream.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "net/waiting/interrupt.h"

namespace disttf::net {

class HttpConnection {
 public:
  // `interrupt` is borrowed for the connection's life.
  explicit HttpConnection(const Interrupt& interrupt);
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Tries every address of `host`.
  [[nodiscard]] std::error_code connect(const std::string& host, std::uint16_t port,
                                        Deadline deadline);
  // Connects to the Unix socket at `path`. Not bounded: a listener accepts at once, or refuses.
  [[nodiscard]] std::error_code connect_local(const std::string& path);
  // Performs the handshake as a client of `host`, whose name or address the certificate must
  // contain. On error `sentence` explains it if there is more to say than the code's message.
  [[nodiscard]] std::error_code start_tls(const std::string& host, const std::string& ca_file,
                                          Deadline deadline, std::string& sentence);
  // Writes all of `text`.
  [[nodiscard]] std::error_code write(std::string_view text, Deadline deadline);
  // Reads at least one byte, unless there is an error; sets `bytes` to the number.
  [[nodiscard]] std::error_code read_some(std::span<std::byte> buffer, std::size_t& bytes,
                                          Deadline deadline);
  // Whether `error` is an intended end. TCP has only a plain close; TLS sends close_notify first,
  // and without it an attacker on the path may have cut off the rest.
  [[nodiscard]] static bool is_orderly_end(const std::error_code& error) noexcept;

 private:
  template <class Start>
  std::error_code run(Deadline deadline, std::size_t& bytes, const Start& start);
  void close() noexcept;

  const Interrupt& interrupt_;
  asio::io_context io_{1};
  asio::posix::stream_descriptor watch_{io_};  // on the interrupt's descriptor, which it borrows
  asio::generic::stream_protocol::socket socket_{io_};
  std::optional<asio::ssl::context> tls_context_;
  std::optional<asio::ssl::stream<asio::generic::stream_protocol::socket&>> tls_;
};

// Sets up OpenSSL for TLS clients, alike on every machine, and finds the file of certificate
// authorities.

// Keeps OpenSSL from reading the machine's openssl.cnf, which may name modules that a static binary
// cannot load. Effective only before OpenSSL's first use in the process: main calls it at its
// start, and HttpConnection again. Callable from any thread.
void ignore_openssl_config() noexcept;

// Returns the system's file of certificate authorities (PEM) from the usual paths of the
// distributions; empty when there is none (a bare container).
[[nodiscard]] std::string find_ca_file();

// Loads the authorities for a client's context. Errors: HttpError::kNoCaFile when `ca_file` is
// empty and the system has none, HttpError::kBadCaFile when it cannot be read or holds no
// certificate. `sentence` then explains it.
[[nodiscard]] std::error_code load_authorities(asio::ssl::context& context, std::string ca_file,
                                               std::string& sentence);

}  // namespace disttf::net
