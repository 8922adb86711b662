// By what the tasks of a run know each other, and nobody else: secrets that they share
// (net/transport/secrets.h), or certificates that name them (net/transport/task_certificates.h).
// Either way they speak TLS 1.3 (net/transport/tls_stream.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "net/transport/tls_error.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace disttf::net {

// What one end of one connection shows the other, and by what it knows it.
//
// One thread at a time.
class Proof {
 public:
  Proof() = default;
  virtual ~Proof() = default;
  Proof(const Proof&) = delete;
  Proof& operator=(const Proof&) = delete;

  // This end, which the caller frees, and which this object must outlive. nullptr: out of memory.
  [[nodiscard]] virtual SSL* make() = 0;
  // OpenSSL has agreed. An error: we have not.
  [[nodiscard]] virtual std::error_code check(SSL& ssl) = 0;
  // What OpenSSL's `reason` means: of a handshake that failed, and of an end after one that did
  // not.
  [[nodiscard]] virtual std::error_code why_not_shaken(SSL& ssl, int reason) = 0;
  [[nodiscard]] virtual std::error_code why_ended(int reason) const = 0;
  // Of one who accepts: what is wrong with this HELLO from the peer, as the rest of a sentence
  // about this task; nullopt: nothing.
  [[nodiscard]] virtual std::optional<std::string> misfit(const Hello& hello) const = 0;
  // Whether the peer may order servers about as their driver (net/wire/run_order.h).
  [[nodiscard]] virtual bool may_drive() const = 0;
  // More about an error than its code says; `self`: this task. Empty: there is no more.
  [[nodiscard]] virtual std::string detail(std::error_code error,
                                           const std::string& self) const = 0;
};

// Callable from any thread.
class Credentials {
 public:
  Credentials() = default;
  virtual ~Credentials() = default;
  Credentials(const Credentials&) = delete;
  Credentials& operator=(const Credentials&) = delete;

  // For a connection over which this HELLO is to be said, and for one that is accepted. It must
  // outlive them.
  [[nodiscard]] virtual std::unique_ptr<Proof> to_say(const Hello& hello) = 0;
  [[nodiscard]] virtual std::unique_ptr<Proof> to_accept() = 0;
  // What they are read from, and read again from where it has changed.
  [[nodiscard]] virtual std::vector<std::string> files() const = 0;
  // What one who connects to `whom` makes of an error: no later attempt would end otherwise.
  // nullopt: one might. `detail`: Proof's.
  [[nodiscard]] virtual std::optional<Refusal> refusal(std::error_code error,
                                                       const std::string& whom,
                                                       const std::string& detail) = 0;
  // The sentence for those who speak without TLS to `whom`, who takes nobody so.
  [[nodiscard]] virtual std::string wanted_by(const std::string& whom) const = 0;
};

// What all TLS between tasks has in common: version 1.3 alone, no tickets, no early data; for both
// ends. nullptr: OpenSSL cannot.
[[nodiscard]] SSL_CTX* make_task_context();

}  // namespace disttf::net
