// Credentials of Google: parses credentials files, proves the identity of a service account, and
// builds the requests that exchange either for an access token.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

// Access to objects, but not to their permissions.
inline constexpr const char* kGoogleScope = "https://www.googleapis.com/auth/devstorage.read_write";

// Secret, except `kind` and `token_url`: never shown.
struct GoogleIdentity {
  // kFederated: google_federation.h has the requests.
  enum class Kind { kServiceAccount, kUser, kFederated } kind = Kind::kServiceAccount;
  std::string token_url;  // the token server: an http(s) URL
  // For a service account.
  std::string email;
  std::string private_key;  // PEM
  std::string key_id;       // may be empty
  // For a user who has logged in.
  std::string client_id;
  std::string client_secret;
  std::string refresh_token;
};

// Parses a credentials file. nullopt: sets `why`, the end of a sentence: 'is of the type
// "impersonated_service_account", ...'.
[[nodiscard]] std::optional<GoogleIdentity> google_identity_from(std::string_view json,
                                                                 std::string& why);

// The form to post to `token_url`. nullopt: the private key is not an RSA key in PEM. REQUIRES: the
// kind is not kFederated.
[[nodiscard]] std::optional<std::string> token_request(const GoogleIdentity& identity,
                                                       std::chrono::sys_seconds now);

struct GoogleToken {
  std::string text;
  std::chrono::sys_seconds end{};  // of its validity
};
// Parses the answer of a token server or a metadata server. nullopt: malformed.
[[nodiscard]] std::optional<GoogleToken> google_token_from(std::string_view json,
                                                           std::chrono::sys_seconds now);
// The error in such an answer: "invalid_grant: Token has been expired or revoked."; may be empty.
[[nodiscard]] std::string google_token_error(std::string_view json);

}  // namespace disttf::roles
