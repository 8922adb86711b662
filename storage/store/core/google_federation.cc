#include "storage/store/core/google_federation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "data/json/json_members.h"
#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"
#include "storage/store/core/store_answers.h"

namespace disttf::roles {
namespace {

using data::member_of;
using data::member_text;

constexpr std::size_t kMaxFederationDepth = 8;  // the parsed answers have three levels
// The scope of the token that is exchanged for the account's; Google's own tools use the same.
constexpr const char* kCloudScope = "https://www.googleapis.com/auth/cloud-platform";
// The lifetimes that Google grants, in seconds.
constexpr std::int64_t kShortestLifetime = 600;
constexpr std::int64_t kLongestLifetime = 43'200;

// Whether the text may go into a header unchanged.
bool is_header_text(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127; });
}

// Reads the source of the subject token. False: sets `why`.
bool read_source(const nlohmann::json& source, FederatedIdentity& identity, std::string& why) {
  identity.file = member_text(source, "file");
  identity.url = member_text(source, "url");
  // An environment_id marks the source of AWS, which needs a signed request instead of a token.
  if (identity.file.empty() == identity.url.empty() ||
      !member_text(source, "environment_id").empty()) {
    why =
        "has a credential_source that is neither a file nor a url; known are these two, not AWS, "
        "executables and certificates";
    return false;
  }
  const nlohmann::json none = nlohmann::json::object();
  const nlohmann::json& headers = member_of(source, "headers");
  for (const auto& [name, value] : (headers.is_object() ? headers : none).items()) {
    const std::string text = value.is_string() ? value.get<std::string>() : "";
    // A line break would add a header to the request.
    if (!is_header_text(name + text)) {
      why = "has headers in its credential_source that are not text of one line";
      return false;
    }
    identity.fields.emplace_back(name, text);
  }
  const nlohmann::json& format = member_of(source, "format");
  const std::string type = member_text(format, "type");
  identity.field = member_text(format, "subject_token_field_name");
  if (type == "json" ? !identity.field.empty() : type.empty() || type == "text") {
    if (type != "json") identity.field.clear();
    return true;
  }
  why =
      "has a format in its credential_source that is neither text nor json with a "
      "subject_token_field_name";
  return false;
}

}  // namespace

std::optional<FederatedIdentity> federated_identity_from(std::string_view text, std::string& why) {
  const nlohmann::json all = data::parse_json(text, kMaxFederationDepth);
  FederatedIdentity identity{
      .audience = member_text(all, "audience"),
      .subject_type = member_text(all, "subject_token_type"),
      .file = {},
      .url = {},
      .fields = {},
      .field = {},
      .client = member_text(all, "client_id"),
      .user_project = member_text(all, "workforce_pool_user_project"),
      .impersonation = member_text(all, "service_account_impersonation_url")};
  if (identity.audience.empty() || identity.subject_type.empty()) {
    why = "lacks audience or subject_token_type";
    return std::nullopt;
  }
  if (!identity.client.empty()) identity.client += ":" + member_text(all, "client_secret");
  const nlohmann::json& lifetime =
      member_of(member_of(all, "service_account_impersonation"), "token_lifetime_seconds");
  if (lifetime.is_number_integer()) {
    identity.lifetime_s =
        std::clamp(lifetime.get<std::int64_t>(), kShortestLifetime, kLongestLifetime);
  }
  if (!read_source(member_of(all, "credential_source"), identity, why)) return std::nullopt;
  return identity;
}

std::optional<std::string> subject_token_from(const FederatedIdentity& identity,
                                              std::string_view text) {
  const std::string token =
      identity.field.empty()
          ? std::string(net::trim(text))
          : member_text(data::parse_json(text, kMaxFederationDepth), identity.field.c_str());
  return token.empty() ? std::nullopt : std::optional(token);
}

std::string exchange_form(const FederatedIdentity& identity, std::string_view subject_token) {
  const auto pair = [](const char* name, std::string_view value) {
    return std::string(name) + "=" + percent_encoded(value, false);
  };
  // OAuth 2.0 token exchange (RFC 8693).
  std::string form = pair("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange") + "&" +
                     pair("requested_token_type", "urn:ietf:params:oauth:token-type:access_token") +
                     "&" + pair("audience", identity.audience) + "&" +
                     pair("scope", identity.impersonation.empty() ? kGoogleScope : kCloudScope) +
                     "&" + pair("subject_token_type", identity.subject_type) + "&" +
                     pair("subject_token", subject_token);
  // As in Google's libraries: a client determines the project itself.
  if (identity.client.empty() && !identity.user_project.empty()) {
    const nlohmann::json options = {{"userProject", identity.user_project}};
    form += "&" + pair("options", data::json_text(options));
  }
  return form;
}

NamedTexts exchange_fields(const FederatedIdentity& identity) {
  NamedTexts fields = {{"Content-Type", "application/x-www-form-urlencoded"}};
  if (!identity.client.empty()) {
    fields.emplace_back("Authorization", "Basic " + net::base64(identity.client));
  }
  return fields;
}

std::string impersonation_body(const FederatedIdentity& identity) {
  const nlohmann::json body = {{"scope", nlohmann::json::array({kGoogleScope})},
                               {"lifetime", std::to_string(identity.lifetime_s) + "s"}};
  return data::json_text(body);
}

std::optional<GoogleToken> impersonated_token_from(std::string_view text,
                                                   std::chrono::sys_seconds now) {
  const nlohmann::json all = data::parse_json(text, kMaxFederationDepth);
  // Under the name in other answers, so that google_token_from() checks it.
  const nlohmann::json named = {{"access_token", member_text(all, "accessToken")}};
  auto token = google_token_from(data::json_text(named), now);
  if (!token) return std::nullopt;
  // Without it the usual lifetime of an hour holds.
  if (const auto end = time_from_iso(member_text(all, "expireTime"))) token->end = *end;
  return token;
}

}  // namespace disttf::roles
