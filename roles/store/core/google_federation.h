// Workload identity federation, as Google's files of the type "external_account" have it: somebody
// else says who we are, in a file or at a URL; what that says, the subject token, Google's server
// of tokens (STS) changes for a token; and that, where a service account is to be impersonated, one
// more server for a token of that account.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roles/store/core/google_identity.h"
#include "roles/store/core/sigv4.h"

namespace disttf::roles {

// None of these is ever shown, but for `file`, `url` and `impersonation`.
struct FederatedIdentity {
  std::string audience;      // the pool of identities and its provider
  std::string subject_type;  // "urn:ietf:params:oauth:token-type:jwt"
  // Where the subject token is: one of the two.
  std::string file;
  std::string url;
  NamedTexts fields;  // that the URL is asked with
  std::string field;  // of the JSON object that is there, the one with the token; empty: it is text
  std::string client;              // "id:secret", of a workforce pool; may be empty
  std::string user_project;        // of one, who is charged; may be empty
  std::string impersonation;       // a URL; empty: nobody is impersonated
  std::int64_t lifetime_s = 3600;  // of the account's token
};

// Of a file of credentials of that type. `why`: half a sentence, where there is none in it.
[[nodiscard]] std::optional<FederatedIdentity> federated_identity_from(std::string_view json,
                                                                       std::string& why);

// In what the file or the URL has. nullopt: there is none.
[[nodiscard]] std::optional<std::string> subject_token_from(const FederatedIdentity& identity,
                                                            std::string_view text);
// The form that is posted for a token, and with which fields.
[[nodiscard]] std::string exchange_form(const FederatedIdentity& identity,
                                        std::string_view subject_token);
[[nodiscard]] NamedTexts exchange_fields(const FederatedIdentity& identity);
// What is posted for one of the service account, in JSON.
[[nodiscard]] std::string impersonation_body(const FederatedIdentity& identity);
// What is answered to that. nullopt: it is none.
[[nodiscard]] std::optional<GoogleToken> impersonated_token_from(std::string_view json,
                                                                 std::chrono::sys_seconds now);

}  // namespace disttf::roles
