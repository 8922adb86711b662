#include "net/tls/tls_error.h"

#include <string>

namespace disttf::net {
namespace {

class TlsCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "disttf tls"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<TlsError>(code)) {
      case TlsError::kOtherSecret:
        return "the peer has another secret";
      case TlsError::kNotTls:
        return "the peer speaks without TLS";
      case TlsError::kNoSecret:
        return "no TLS with a shared secret";
      case TlsError::kCut:
        return "the connection was cut off";
      case TlsError::kBroken:
        return "a TLS record was modified in transit";
      case TlsError::kNoCertificate:
        return "no TLS with certificates";
      case TlsError::kNotTrusted:
        return "no authority that this task trusts has signed the peer's certificate";
      case TlsError::kOtherTask:
        return "the peer's certificate is another task's";
      case TlsError::kNotTaken:
        return "the peer rejects the certificate of this task";
      case TlsError::kNotValidNow:
        return "a certificate has expired, or is not valid yet";
      case TlsError::kNotShaken:
        return "the TLS handshake failed";
      case TlsError::kNotSpoken:
        return "TLS, which this task does not use";
      case TlsError::kSecretChanges:
        return "the peer has another secret now";
    }
    return "unknown TLS error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& tls_category() noexcept {
  static const TlsCategory category;
  return category;
}

std::error_code make_error_code(TlsError error) noexcept {
  return {static_cast<int>(error), tls_category()};
}

}  // namespace disttf::net
