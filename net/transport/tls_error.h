// How TLS between two tasks fails.
#pragma once

#include <system_error>

namespace disttf::net {

enum class TlsError {
  kOtherSecret = 1,  // the peer has another one than we
  kNotTls,           // the peer speaks, but without
  kNoSecret,         // the peer speaks TLS, and has no secret of this kind
  kCut,              // the connection ended without a farewell
  kBroken,           // a record that is none, or was changed on its way
  kNoCertificate,    // the peer speaks TLS, and not by certificates
  kNotTrusted,       // the peer's certificate is of nobody whom we trust
  kOtherTask,        // the peer's certificate names another task than it should
  kNotTaken,         // the peer does not take ours
  kNotValidNow,      // either of the two has expired, or begins later
  kNotShaken,        // the handshake has failed for another reason
  kNotSpoken,        // the peer speaks TLS, and this task none
  kSecretChanges,    // the peer has another secret than we, which may be so only for now
};
[[nodiscard]] const std::error_category& tls_category() noexcept;
[[nodiscard]] std::error_code make_error_code(TlsError error) noexcept;

}  // namespace disttf::net

template <>
struct std::is_error_code_enum<disttf::net::TlsError> : std::true_type {};
