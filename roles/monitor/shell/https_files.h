// The certificate with which an address for people and their tools answers over https.
#pragma once

#include <memory>
#include <string>

#include "net/http/tls_identity.h"

namespace disttf::roles {

// PEM, as TlsIdentity has them. Both, or none of them.
struct HttpsFiles {
  std::string certificate;  // empty: http
  std::string key;

  [[nodiscard]] const char* scheme() const noexcept {
    return certificate.empty() ? "http" : "https";
  }
};

// Null: http. Closes the process's memory to others, as it holds a key from here on; what is wrong
// with renewed files goes to the log. A key that does not fit yet is waited for for a moment.
// Throws Failure (kUsage) with one sentence.
[[nodiscard]] std::shared_ptr<net::TlsIdentity> identity_of(const HttpsFiles& files);

}  // namespace disttf::roles
