// Credentials of Google: parses credentials files, proves the identity of a service account, and
// builds the requests that exchange either for an access token.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "storage/store/core/aws_identity.h"

namespace disttf::roles {

// Access to objects, but not to their permissions.
inline constexpr const char* kGoogleScope = "https://www.googleapis.com/auth/devstorage.read_write";

// Secret, except `kind` and `token_url`: never shown.
struct GoogleIdentity {
  // kFederated: see below for the requests.
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

// Workload identity federation, with Google's files of type "external_account". Another provider
// proves our identity by a subject token, in a file or at a URL. Google's token server (STS)
// exchanges it for an access token; if a service account is to be impersonated, another server
// exchanges that for a token of the account.

// Secret, except `file`, `url` and `impersonation`: never shown.
struct FederatedIdentity {
  std::string audience;      // the pool of identities and its provider
  std::string subject_type;  // "urn:ietf:params:oauth:token-type:jwt"
  // The source of the subject token: one of the two.
  std::string file;
  std::string url;
  NamedTexts fields;          // headers of the request to the URL
  std::string field;          // the member of the JSON object with the token; empty: plain text
  std::string client;         // "id:secret" of a workforce pool; may be empty
  std::string user_project;   // of such a pool, the billed project; may be empty
  std::string impersonation;  // a URL; empty: no impersonation
  std::int64_t lifetime_s = 3600;  // of the account's token
};

// Parses a credentials file of that type. nullopt: sets `why`, the end of a sentence.
[[nodiscard]] std::optional<FederatedIdentity> federated_identity_from(std::string_view json,
                                                                       std::string& why);

// Extracts the token from the contents of the file or the URL. nullopt: there is none.
[[nodiscard]] std::optional<std::string> subject_token_from(const FederatedIdentity& identity,
                                                            std::string_view text);
// The form and the headers of the token exchange.
[[nodiscard]] std::string exchange_form(const FederatedIdentity& identity,
                                        std::string_view subject_token);
[[nodiscard]] NamedTexts exchange_fields(const FederatedIdentity& identity);
// The JSON body of the request for a token of the service account.
[[nodiscard]] std::string impersonation_body(const FederatedIdentity& identity);
// Parses the answer to that. nullopt: malformed.
[[nodiscard]] std::optional<GoogleToken> impersonated_token_from(std::string_view json,
                                                                 std::chrono::sys_seconds now);

}  // namespace disttf::roles
