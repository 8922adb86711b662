#include "net/http/access_tokens.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "net/http/browser_guard.h"
#include "net/transport/private_file.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr std::size_t kMostFileBytes = (kMostTokenBytes + 2) * kMostTokens;
constexpr std::chrono::seconds kLookInterval{1};

bool is_visible(char c) { return c > ' ' && c < '\x7f'; }

std::vector<std::string> parse(std::string_view text, const std::string& source) {
  std::vector<std::string> tokens;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.size() < kLeastTokenBytes || line.size() > kMostTokenBytes ||
        !std::ranges::all_of(line, is_visible)) {
      throw std::invalid_argument(source + " has a token of " + std::to_string(line.size()) +
                                  " bytes: allowed are " + std::to_string(kLeastTokenBytes) +
                                  " to " + std::to_string(kMostTokenBytes) +
                                  " visible characters of ASCII in a line, random ones");
    }
    tokens.emplace_back(line);
  }
  if (tokens.empty() || tokens.size() > kMostTokens) {
    throw std::invalid_argument(source + " has " + std::to_string(tokens.size()) +
                                " tokens: allowed are 1 to " + std::to_string(kMostTokens) +
                                ", one a line");
  }
  return tokens;
}

// The rest of `text` behind a scheme's name, which is written in any case (RFC 9110, 11.1), and
// blanks; empty: it is another scheme.
std::string_view behind_scheme(std::string_view text, std::string_view scheme) {
  const std::size_t blank = text.find(' ');
  if (blank == std::string_view::npos || to_lower(text.substr(0, blank)) != scheme) return {};
  return trim(text.substr(blank));
}

// Of "name:password" in base64; empty: it is none.
std::string password_in(std::string_view base64) {
  if (base64.size() > kMostFileBytes || base64.size() % 4 != 0) return {};
  std::string text(base64.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                   reinterpret_cast<const unsigned char*>(base64.data()),
                                   static_cast<int>(base64.size()));
  if (size < 0) return {};
  const std::size_t padding = base64.ends_with("==") ? 2 : base64.ends_with('=') ? 1 : 0;
  text.resize(static_cast<std::size_t>(size) - padding);
  const std::size_t colon = text.find(':');
  return colon == std::string::npos ? std::string() : text.substr(colon + 1);
}

}  // namespace

AccessTokens::AccessTokens(std::string path, std::function<void(std::string_view)> warn)
    : path_(std::move(path)), warn_(std::move(warn)) {
  read();
}

void AccessTokens::read() {
  const std::string source = "--token_file: " + quoted(path_);
  std::string text = read_private_file(path_, source, kMostFileBytes, seen_);
  tokens_ = parse(text, source);
  OPENSSL_cleanse(text.data(), text.size());
}

void AccessTokens::read_again() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kLookInterval) return;
  looked_ = now;
  const FileSeen seen = FileSeen::of(path_);
  if (seen == FileSeen{} || seen == seen_) return;  // being replaced: looked at again next time
  seen_ = seen;
  try {
    read();
  } catch (const std::invalid_argument& error) {
    if (warn_) warn_(std::string(error.what()) + "; the tokens of before stay");
  }
}

std::string AccessTokens::offered() {
  const std::lock_guard lock(mutex_);
  read_again();
  return tokens_.front();
}

bool AccessTokens::admit(std::string_view authorization) {
  const std::string password = password_in(behind_scheme(authorization, "basic"));
  const std::string_view bearer = behind_scheme(authorization, "bearer");
  const std::lock_guard lock(mutex_);
  read_again();
  bool found = false;
  for (const std::string& token : tokens_) {
    found = is_same_secret(bearer, token) || found;
    found = is_same_secret(password, token) || found;
  }
  return found;
}

HttpReply unauthorized_reply() {
  HttpReply reply = error_reply(kUnauthorized, "this needs a token: Authorization: Bearer TOKEN");
  reply.fields.emplace_back("WWW-Authenticate", "Bearer realm=\"disttf\"");
  reply.fields.emplace_back("WWW-Authenticate", "Basic realm=\"disttf\", charset=\"UTF-8\"");
  return reply;
}

}  // namespace disttf::net
