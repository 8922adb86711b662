#include "net/http/access_tokens.h"

#include <openssl/evp.h>

#include <utility>

#include "net/http/http_status.h"
#include "net/tls/private_file.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kMostBase64Bytes = 2 * kMostTokenBytes;
constexpr std::chrono::seconds kLookInterval{1};
constexpr SecretLines kTokenLines{.what = "token",
                                  .least_bytes = kLeastTokenBytes,
                                  .most_bytes = kMostTokenBytes,
                                  .most_lines = kMostTokens,
                                  .must_be_visible = true};

// Returns the rest of `text` after a scheme's name, in any case (RFC 9110, 11.1), and blanks;
// empty: another scheme.
std::string_view behind_scheme(std::string_view text, std::string_view scheme) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || to_lower(text.substr(0, blank)) != scheme) return {};
  return trim(text.substr(blank));
}

// The password of a base64 text "name:password"; empty: malformed.
std::string password_in(std::string_view base64) {
  if (base64.size() > kMostBase64Bytes || base64.size() % 4 != 0) return {};
  std::string text(base64.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(base64.data()),
                                   static_cast<int>(base64.size()));
  if (size < 0) return {};
  // EVP_DecodeBlock() decodes padding to zero bytes and counts them.
  const std::size_t padding = base64.ends_with("==") ? 2 : base64.ends_with('=') ? 1 : 0;
  text.resize(static_cast<std::size_t>(size) - padding);
  const std::size_t colon = text.find(':');
  return colon == std::string::npos ? std::string() : text.substr(colon + 1);
}

}  // namespace

AccessTokens::AccessTokens(std::string path, std::function<void(std::string_view)> warn)
    : path_(std::move(path)),
      watch_({path_}, "the previous tokens stay in use", std::move(warn)),
      tokens_(read(kTokenLines)) {}

std::vector<std::string> AccessTokens::read(const SecretLines& allowed) const {
  return secret_lines_of_file(path_, "--token_file: " + quoted(path_), allowed);
}

void AccessTokens::read_again() {
  const auto now = std::chrono::steady_clock::now();
  // Every request comes here; one look at the file per second is enough.
  if (now - looked_ < kLookInterval) return;
  looked_ = now;
  watch_.read_where_due([this] {
    // Emptying the file revokes all tokens.
    SecretLines allowed = kTokenLines;
    allowed.may_be_none = true;
    tokens_ = read(allowed);
  });
}

std::string AccessTokens::offered() {
  const std::lock_guard lock(mutex_);
  read_again();
  return tokens_.empty() ? std::string() : tokens_.front();
}

bool AccessTokens::admit(std::string_view authorization) {
  const std::string password = password_in(behind_scheme(authorization, "basic"));
  const std::string_view bearer = behind_scheme(authorization, "bearer");
  const std::lock_guard lock(mutex_);
  read_again();
  // Compares with all tokens, so that the time does not depend on which one matches.
  bool found = false;
  for (const std::string& token : tokens_) {
    found = is_same_secret(bearer, token) || found;
    found = is_same_secret(password, token) || found;
  }
  return found;
}

std::optional<HttpReply> refuse_without_token(AccessTokens* tokens,
                                              const HttpServerRequest& request) {
  if (tokens == nullptr || tokens->admit(request.authorization)) return std::nullopt;
  HttpReply reply =
      error_reply(http_status::kUnauthorized, "this needs a token: Authorization: Bearer TOKEN");
  reply.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"disttf\"");
  reply.fields.emplace_back("WWW-Authenticate", "Basic realm=\"disttf\", charset=\"UTF-8\"");
  return reply;
}

}  // namespace disttf::net
