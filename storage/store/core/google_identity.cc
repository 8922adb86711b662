#include "storage/store/core/google_identity.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "data/json/json_members.h"
#include "data/json/json_text.h"
#include "net/wire/base64.h"
#include "net/wire/text.h"
#include "storage/store/core/sigv4.h"

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

}  // namespace disttf::roles
