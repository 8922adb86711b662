#include "storage/store/core/google_identity.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"
#include "storage/store/core/aws_identity.h"
#include "storage/store/core/store_answers.h"

namespace disttf::roles {
namespace {

using data::member_text;
using Json = nlohmann::json;

constexpr std::size_t kMaxIdentityDepth = 8;  // the parsed answers have one level
constexpr std::size_t kMaxTokenError = 200;
constexpr const char* kTokenUrl = "https://oauth2.googleapis.com/token";
constexpr const char* kExchangeUrl = "https://sts.googleapis.com/v1/token";
// The longest lifetime that Google grants.
constexpr std::int64_t kAssertionSeconds = 3600;

template <auto Free>
struct FreedBy {
  template <typename T>
  void operator()(T* pointer) const noexcept {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, FreedBy<&BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreedBy<&EVP_PKEY_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, FreedBy<&EVP_MD_CTX_free>>;

// Rejects keys with a passphrase: a task cannot prompt for one.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writes*/, void* /*context*/) { return -1; }

std::optional<std::string> rs256(const std::string& private_key, const std::string& text) {
  // BIO_new_mem_buf() takes an int.
  if (private_key.size() > std::numeric_limits<int>::max()) return std::nullopt;
  const Bio file(BIO_new_mem_buf(private_key.data(), static_cast<int>(private_key.size())));
  if (file == nullptr) return std::nullopt;
  const Key key(PEM_read_bio_PrivateKey(file.get(), nullptr, no_passphrase, nullptr));
  const Digest digest(EVP_MD_CTX_new());
  // RS256, which the assertion names, needs an RSA key.
  if (key == nullptr || digest == nullptr || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA ||
      EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) != 1) {
    return std::nullopt;
  }
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  // Without a buffer, the call returns the size of the signature.
  if (EVP_DigestSign(digest.get(), nullptr, &size, bytes, text.size()) != 1) return std::nullopt;
  std::string signature(size, '\0');
  auto* const to = reinterpret_cast<unsigned char*>(signature.data());
  if (EVP_DigestSign(digest.get(), to, &size, bytes, text.size()) != 1) return std::nullopt;
  // The first call returns the largest size, the second one the actual size.
  signature.resize(size);
  return signature;
}

}  // namespace

std::optional<GoogleIdentity> google_identity_from(std::string_view text, std::string& why) {
  const Json all = data::parse_json(text, kMaxIdentityDepth);
  if (!all.is_object()) {
    why = "is not a JSON object";
    return std::nullopt;
  }
  const std::string type = member_text(all, "type");
  GoogleIdentity identity{.token_url = member_text(all, "token_uri"),
                          .email = member_text(all, "client_email"),
                          .private_key = member_text(all, "private_key"),
                          .key_id = member_text(all, "private_key_id"),
                          .client_id = member_text(all, "client_id"),
                          .client_secret = member_text(all, "client_secret"),
                          .refresh_token = member_text(all, "refresh_token")};
  if (identity.token_url.empty()) identity.token_url = kTokenUrl;
  if (type == "service_account") {
    if (!identity.email.empty() && !identity.private_key.empty()) return identity;
    why = "lacks client_email or private_key";
  } else if (type == "authorized_user") {
    identity.kind = GoogleIdentity::Kind::kUser;
    if (!identity.client_id.empty() && !identity.refresh_token.empty()) return identity;
    why = "lacks client_id or refresh_token";
  } else if (type == "external_account") {
    identity.kind = GoogleIdentity::Kind::kFederated;
    // Another name than in the other kinds, and another service.
    identity.token_url = member_text(all, "token_url");
    if (identity.token_url.empty()) identity.token_url = kExchangeUrl;
    return identity;
  } else {
    why = "is of the type " + net::quoted(type) +
          "; known are service_account, authorized_user and external_account";
  }
  return std::nullopt;
}

std::optional<std::string> token_request(const GoogleIdentity& identity,
                                         std::chrono::sys_seconds now) {
  if (identity.kind == GoogleIdentity::Kind::kUser) {
    return "grant_type=refresh_token&client_id=" + percent_encoded(identity.client_id, false) +
           "&client_secret=" + percent_encoded(identity.client_secret, false) +
           "&refresh_token=" + percent_encoded(identity.refresh_token, false);
  }
  // The assertion is a JSON Web Token (RFC 7523), signed with the account's key: the key itself is
  // not sent.
  const std::int64_t seconds = now.time_since_epoch().count();
  Json head = {{"alg", "RS256"}, {"typ", "JWT"}};
  if (!identity.key_id.empty()) head["kid"] = identity.key_id;
  const Json claims = {{"iss", identity.email},
                       {"scope", kGoogleScope},
                       {"aud", identity.token_url},
                       {"iat", seconds},
                       {"exp", seconds + kAssertionSeconds}};
  const auto dumped = [](const Json& each) { return net::base64_for_urls(data::json_text(each)); };
  const std::string text = dumped(head) + "." + dumped(claims);
  const auto signature = rs256(identity.private_key, text);
  if (!signature) return std::nullopt;
  return "grant_type=" + percent_encoded("urn:ietf:params:oauth:grant-type:jwt-bearer", false) +
         "&assertion=" + text + "." + net::base64_for_urls(*signature);
}

std::optional<GoogleToken> google_token_from(std::string_view text, std::chrono::sys_seconds now) {
  const Json all = data::parse_json(text, kMaxIdentityDepth);
  GoogleToken token{.text = member_text(all, "access_token")};
  // The token goes into a header unchanged.
  const bool is_one_word =
      std::ranges::all_of(token.text, [](char c) { return c > ' ' && c < 127; });
  if (token.text.empty() || !is_one_word) return std::nullopt;
  std::int64_t lasts = kAssertionSeconds;
  if (const auto found = all.find("expires_in"); found != all.end() && found->is_number_integer()) {
    // Clamped, since the answer decides when the token is renewed.
    lasts = std::clamp<std::int64_t>(found->get<std::int64_t>(), 0, 24 * kAssertionSeconds);
  }
  token.end = now + std::chrono::seconds(lasts);
  return token;
}

std::string google_token_error(std::string_view text) {
  const Json all = data::parse_json(text, kMaxIdentityDepth);
  std::string said = member_text(all, "error");
  if (said.empty() && all.is_object() && all.contains("error")) {  // the form of other Google APIs
    said = member_text(all["error"], "message");
  }
  const std::string more = member_text(all, "error_description");
  if (!more.empty()) said += (said.empty() ? "" : ": ") + more;
  return net::one_line(net::cut_utf8(said, kMaxTokenError));
}

namespace {

using data::member_of;

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
