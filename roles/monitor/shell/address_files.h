// The files that an address for people and their tools goes by: the certificate with which it
// answers over https, and the tokens of those who may ask.
#pragma once

#include <memory>
#include <string>

#include "net/http/access_tokens.h"
#include "net/http/tls_identity.h"

namespace disttf::roles {

// Certificate and key: PEM, as TlsIdentity has them. Both, or none of them.
struct AddressFiles {
  std::string certificate;  // empty: http
  std::string key;
  std::string tokens = {};  // as AccessTokens has them; empty: whoever reaches the address may ask

  [[nodiscard]] const char* scheme() const noexcept {
    return certificate.empty() ? "http" : "https";
  }

  friend bool operator==(const AddressFiles&, const AddressFiles&) = default;
};

// Null: http. Closes the process's memory to others, as it holds a key from here on; what is wrong
// with renewed files goes to the log. A key that does not fit yet is waited for for a moment.
// Throws Failure (kUsage) with one sentence.
[[nodiscard]] std::shared_ptr<net::TlsIdentity> identity_of(const AddressFiles& files);

// Null: none is asked for. The same; warns where they would be said in clear to an address,
// `host`, that other machines reach.
[[nodiscard]] std::shared_ptr<net::AccessTokens> tokens_of(const AddressFiles& files,
                                                           const std::string& host);

}  // namespace disttf::roles
