// The certificate of an https server, and the server's end of a TLS connection.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "net/tls/file_watch.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace disttf::net {

// A certificate, followed by those between it and its authority, and its key: two PEM files. They
// are checked on each connection and read again when they have changed, so a certificate can be
// renewed without a restart. Files that do not match each other yet, or are unreadable, cause a
// warning, and the previous ones stay in use. Existing connections keep theirs.
//
// Thread-safe.
class TlsIdentity {
 public:
  // Throws std::invalid_argument: the flag, the file, what is wrong with it; NotFittingYet
  // (net/tls/certificate_files.h).
  TlsIdentity(std::string certificate_file, std::string key_file,
              std::function<void(std::string_view)> warn);

  // Makes the SSL object of an accepted connection; nullptr: out of memory. The caller frees it.
  [[nodiscard]] SSL* session();

 private:
  struct Free {
    void operator()(SSL_CTX* context) const noexcept;
  };
  using Context = std::unique_ptr<SSL_CTX, Free>;
  [[nodiscard]] Context read() const;
  void read_again();  // REQUIRES: mutex_ is held

  const std::string certificate_file_;
  const std::string key_file_;
  std::mutex mutex_;
  FileWatch watch_;  // guarded by mutex_
  Context context_;  // guarded by mutex_
};

// The answer to plain http at such an address.
inline constexpr const char* kHttpsAlone = "this address accepts only https";

// TLS 1.2 or 1.3 over an accepted, non-blocking socket.
//
// Use by one thread at a time. The socket stays its owner's, which waits for it after would_block
// and closes it after any other error. The first reads perform the handshake.
class TlsAccepted {
 public:
  // nullptr: out of memory.
  [[nodiscard]] static std::unique_ptr<TlsAccepted> over(int fd, TlsIdentity& identity);
  ~TlsAccepted();
  TlsAccepted(const TlsAccepted&) = delete;
  TlsAccepted& operator=(const TlsAccepted&) = delete;

  // eof: the peer has sent close_notify. The caller must read until would_block: epoll does not
  // report bytes that TLS has already taken from the socket.
  [[nodiscard]] std::size_t read_some(std::span<char> into, std::error_code& error);
  // After would_block, call again with the same bytes, or the same and more.
  [[nodiscard]] std::size_t write_some(std::string_view bytes, std::error_code& error);
  // The event that would_block waits for: POLLIN or POLLOUT.
  [[nodiscard]] short waits_for() const noexcept { return waits_for_; }
  // Whether the handshake is over. Before that nothing can be sent to the peer.
  [[nodiscard]] bool is_shaken() const noexcept;
  // Whether there is data to read that poll() does not report.
  [[nodiscard]] bool has_bytes() const noexcept;
  // After an error: the peer sent http without TLS. Nothing was answered yet.
  [[nodiscard]] bool is_plain_http() const noexcept { return is_plain_http_; }
  // Sends close_notify if the socket takes it at once.
  void finish() noexcept;

 private:
  TlsAccepted(SSL* ssl, int fd) : ssl_(ssl), fd_(fd) {}
  [[nodiscard]] std::error_code failure(int result);

  SSL* const ssl_;
  int fd_;  // OpenSSL's callbacks point to it
  short waits_for_ = 0;
  bool has_failed_ = false;
  bool is_plain_http_ = false;
};

}  // namespace disttf::net
