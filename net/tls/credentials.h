// How the tasks of a run authenticate each other: secrets that they share
// (net/tls/secrets.h), or certificates that name them (net/tls/task_certificates.h). In
// both cases they use TLS 1.3 (net/tls/tls_stream.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "net/tls/tls_error.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace disttf::net {

// What one end of one connection shows to the other, and how it checks the other.
//
// Use by one thread at a time.
class Proof {
 public:
  Proof() = default;
  virtual ~Proof() = default;
  Proof(const Proof&) = delete;
  Proof& operator=(const Proof&) = delete;

  // Makes this end's SSL object, which the caller frees before this object is destroyed. nullptr:
  // out of memory.
  [[nodiscard]] virtual SSL* make() = 0;
  // Called when OpenSSL has accepted the peer. An error: the peer is rejected all the same.
  [[nodiscard]] virtual std::error_code check(SSL& ssl) = 0;
  // Translate OpenSSL's `reason`: for a failed handshake, and for an end after a successful one.
  [[nodiscard]] virtual std::error_code why_not_shaken(SSL& ssl, int reason) = 0;
  [[nodiscard]] virtual std::error_code why_ended(int reason) const = 0;
  // For the accepting end: why this HELLO does not match the peer, as the rest of a sentence about
  // this task; nullopt: it matches.
  [[nodiscard]] virtual std::optional<std::string> misfit(const Hello& hello) const = 0;
  // Whether the peer may send requests to servers as their driver (net/wire/server_requests.h).
  [[nodiscard]] virtual bool may_drive() const = 0;
  // Details of an error; `self`: this task. Empty: there are none.
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

  // Make the proof for a connection over which this HELLO is sent, and for one that is accepted.
  // This object must outlive them.
  [[nodiscard]] virtual std::unique_ptr<Proof> to_say(const Hello& hello) = 0;
  [[nodiscard]] virtual std::unique_ptr<Proof> to_accept() = 0;
  // The files that these credentials are read from, and read again from after a change.
  [[nodiscard]] virtual std::vector<std::string> files() const = 0;
  // For a task that connects to `whom`: a refusal if no later attempt can succeed after this error;
  // nullopt if one might. `detail`: Proof's.
  [[nodiscard]] virtual std::optional<Refusal> refusal(std::error_code error,
                                                       const std::string& whom,
                                                       const std::string& detail) = 0;
  // The sentence for a peer that connects to `whom` without TLS.
  [[nodiscard]] virtual std::string wanted_by(const std::string& whom) const = 0;
};

// Common settings of all TLS between tasks: version 1.3 only, no tickets, no early data; for both
// ends. nullptr: OpenSSL failed.
[[nodiscard]] SSL_CTX* make_task_context();

}  // namespace disttf::net
