// Who a server over https is, and what it says to one who connects.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "net/transport/file_watch.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace disttf::net {

// A certificate, with those between it and its authority behind it, and its key: two files, PEM.
// They are looked at when somebody connects, and read again where they have changed, so that a
// certificate can be renewed without a restart: files that do not fit each other yet, or cannot be
// read, cost a warning, and the ones of before go on to count. Connections keep theirs.
//
// Thread-safe.
class TlsIdentity {
 public:
  // Throws std::invalid_argument: the flag, the file, what is wrong with it; NotFittingYet
  // (net/transport/certificate_files.h).
  TlsIdentity(std::string certificate_file, std::string key_file,
              std::function<void(std::string_view)> warn);

  // Of one connection that was accepted; nullptr: out of memory. The caller frees it.
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

// For who asks such an address by http.
inline constexpr const char* kHttpsAlone = "this address speaks https alone";

// TLS 1.2 or 1.3 over a socket that was accepted and does not block.
//
// One thread at a time. The socket stays its owner's, who waits for it where an error is
// would_block, and closes it after any other. The handshake is part of the first reads.
class TlsAccepted {
 public:
  // nullptr: out of memory.
  [[nodiscard]] static std::unique_ptr<TlsAccepted> over(int fd, TlsIdentity& identity);
  ~TlsAccepted();
  TlsAccepted(const TlsAccepted&) = delete;
  TlsAccepted& operator=(const TlsAccepted&) = delete;

  // eof: the peer has said farewell. Reads of what is there until would_block: what was taken from
  // the socket is not seen by who waits for it.
  [[nodiscard]] std::size_t read_some(std::span<char> into, std::error_code& error);
  // After would_block, again with the same bytes, or the same and more.
  [[nodiscard]] std::size_t write_some(std::string_view bytes, std::error_code& error);
  // What would_block waits for: POLLIN or POLLOUT.
  [[nodiscard]] short waits_for() const noexcept { return waits_for_; }
  // The handshake is over. Before that nothing can be said to the peer.
  [[nodiscard]] bool is_shaken() const noexcept;
  // There is something to read that poll() does not know of.
  [[nodiscard]] bool has_bytes() const noexcept;
  // After an error: the peer has begun to ask over http, without TLS. Nothing was answered yet.
  [[nodiscard]] bool is_plain_http() const noexcept { return is_plain_http_; }
  // Says farewell if the socket takes it at once.
  void finish() noexcept;

 private:
  TlsAccepted(SSL* ssl, int fd) : ssl_(ssl), fd_(fd) {}
  [[nodiscard]] std::error_code failure(int result);

  SSL* const ssl_;
  int fd_;  // which OpenSSL's callbacks look at
  short waits_for_ = 0;
  bool has_failed_ = false;
  bool is_plain_http_ = false;
};

}  // namespace disttf::net
