// Errors of TLS between two tasks.
#pragma once

#include <system_error>

namespace disttf::net {

enum class TlsError {
  kOtherSecret = 1,  // the peer has a different secret
  kNotTls,           // the peer sends data, but not TLS
  kNoSecret,         // the peer uses TLS, but has no secret of this kind
  kCut,              // the connection ended without a TLS close_notify
  kBroken,           // an invalid record, or one that was modified in transit
  kNoCertificate,    // the peer uses TLS, but without certificates
  kNotTrusted,       // no authority that this task trusts has signed the peer's certificate
  kOtherTask,        // the peer's certificate names another task than expected
  kNotTaken,         // the peer rejects this task's certificate
  kNotValidNow,      // one of the two has expired, or is not valid yet
  kNotShaken,        // the handshake has failed for another reason
  kNotSpoken,        // the peer uses TLS, and this task does not
  kSecretChanges,    // the peer has a different secret, possibly only for now
};
[[nodiscard]] const std::error_category& tls_category() noexcept;
[[nodiscard]] std::error_code make_error_code(TlsError error) noexcept;

}  // namespace disttf::net

template <>
struct std::is_error_code_enum<disttf::net::TlsError> : std::true_type {};
