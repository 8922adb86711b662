// Who may use an HTTP address for people and tools, and who did: certificate, tokens, audit log.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "net/http/access_tokens.h"
#include "net/http/http_request.h"
#include "net/http/tls_identity.h"

namespace disttf::roles {

// Certificate and key: PEM, as in TlsIdentity. Both are set, or neither.
struct AddressFiles {
  std::string certificate;  // empty: http
  std::string key;
  std::string tokens = {};  // as in AccessTokens; empty: every client that reaches the address

  [[nodiscard]] const char* scheme() const noexcept {
    return certificate.empty() ? "http" : "https";
  }

  friend bool operator==(const AddressFiles&, const AddressFiles&) = default;
};

// Null: http. Protects the process's memory, which contains a key from here on; logs errors of
// renewed files. Waits a moment for a key that does not match yet. Throws Failure (kUsage) with one
// sentence.
[[nodiscard]] std::shared_ptr<net::TlsIdentity> identity_of(const AddressFiles& files);

// Null: no tokens are required. Throws likewise. Warns if they would be sent in clear text to an
// address, `host`, that other machines reach.
[[nodiscard]] std::shared_ptr<net::AccessTokens> tokens_of(const AddressFiles& files,
                                                           const std::string& host);

// The audit log of changes through an HTTP address: who changed what.

// For HttpResponderOptions::audit. Logs "POST /v1/stop at the page by 127.0.0.1:51312: 200" as
// `info`, a rejected request as a warning. `where`: the address, "the page".
[[nodiscard]] std::function<void(const net::HttpServerRequest&, const std::string&, int,
                                 std::size_t)>
audit_of(const char* where);

}  // namespace disttf::roles
