// Who we are at Google: what its files of credentials say, how a service account proves itself, and
// what is asked of the server that changes either for a token.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace disttf::roles {

// Objects, and no more: not who may what.
inline constexpr const char* kGoogleScope = "https://www.googleapis.com/auth/devstorage.read_write";

// None of these is ever shown, but for `kind` and `place`.
struct GoogleIdentity {
  // kFederated: what is asked for is in google_federation.h.
  enum class Kind { kServiceAccount, kUser, kFederated } kind = Kind::kServiceAccount;
  std::string place;  // where tokens are had: an http(s) URL
  // Of a service account.
  std::string email;
  std::string private_key;  // PEM
  std::string key_id;       // may be empty
  // Of a user who has logged in once.
  std::string client_id;
  std::string client_secret;
  std::string refresh_token;
};

// Of a file of credentials. `why`: half a sentence, where there is none in it: 'is of the type
// "impersonated_service_account", ...'.
[[nodiscard]] std::optional<GoogleIdentity> google_identity_from(std::string_view json,
                                                                 std::string& why);

// The form that is posted to `place`. nullopt: the private key is none of RSA in PEM. REQUIRES:
// it is not kFederated.
[[nodiscard]] std::optional<std::string> token_request(const GoogleIdentity& identity,
                                                       std::chrono::sys_seconds now);

struct GoogleToken {
  std::string text;
  std::chrono::sys_seconds end{};  // when it is of no use any more
};
// What a server of tokens answers, also that of a machine. nullopt: it is none.
[[nodiscard]] std::optional<GoogleToken> google_token_from(std::string_view json,
                                                           std::chrono::sys_seconds now);
// What it says when it has none: "invalid_grant: Token has been expired or revoked."; may be empty.
[[nodiscard]] std::string google_token_error(std::string_view json);

}  // namespace disttf::roles
