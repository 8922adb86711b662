#include "storage/store/core/aws_identity.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>

#include "data/checksums.h"
#include "net/wire/text.h"

namespace disttf::roles {

std::string setting_of(const ProfileSettings& settings, std::string_view name) {
  const auto found = settings.find(name);
  return found == settings.end() ? "" : found->second;
}

ProfileSettings profile_settings(std::string_view text, std::string_view profile, bool in_config) {
  ProfileSettings settings;
  bool is_ours = false;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view bare = net::trim(line);
    if (bare.empty() || bare.front() == '#' || bare.front() == ';') continue;
    if (bare.front() == '[') {
      std::string_view name = net::trim(bare.substr(1, bare.find(']') - 1));
      if (in_config && name != "default") {
        static constexpr std::string_view kWord = "profile";
        // Sections of config without the word are of another kind, "[sso-session x]".
        name = name.starts_with(kWord) ? net::trim(name.substr(kWord.size())) : std::string_view{};
      }
      // A profile may occur in several sections, whose settings add up; the last value counts.
      is_ours = !name.empty() && name == profile;
      continue;
    }
    const std::size_t equals = bare.find('=');
    // Indented lines belong to the setting above them, such as `s3 =`.
    const bool is_inner = line.front() == ' ' || line.front() == '\t';
    if (!is_ours || is_inner || equals == std::string_view::npos) continue;
    settings.insert_or_assign(net::to_lower(net::trim(bare.substr(0, equals))),
                              std::string(net::trim(bare.substr(equals + 1))));
  }
  return settings;
}

namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";
constexpr std::string_view kUpperHex = "0123456789ABCDEF";
constexpr std::string_view kLowerHex = "0123456789abcdef";

std::string hmac(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
           &size) == nullptr) {
    throw std::runtime_error("libcrypto cannot compute HMAC-SHA-256");
  }
  return {reinterpret_cast<const char*>(digest.data()), size};
}

std::string hex_of(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kLowerHex[byte >> 4U];
    text += kLowerHex[byte & 15U];
  }
  return text;
}

std::string sha256_of(std::string_view text) {
  return data::sha256_hex(std::as_bytes(std::span(text.data(), text.size())));
}

std::string canonical_query(const NamedTexts& query) {
  std::vector<std::string> parts;
  for (const auto& [name, value] : query) {
    parts.push_back(percent_encoded(name, false) + "=" + percent_encoded(value, false));
  }
  // The signature covers the parameters in sorted order, and the request sends them so.
  std::ranges::sort(parts);
  return net::joined(parts, "&");
}

}  // namespace

std::string amazon_time(std::chrono::sys_seconds time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(time - day);
  const auto two = [](std::int64_t value) {
    const std::string text = std::to_string(value);
    return value < 10 ? "0" + text : text;
  };
  return std::to_string(static_cast<int>(date.year())) + two(static_cast<unsigned>(date.month())) +
         two(static_cast<unsigned>(date.day())) + "T" + two(clock.hours().count()) +
         two(clock.minutes().count()) + two(clock.seconds().count()) + "Z";
}

std::string percent_encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  for (const char c : text) {
    // The unreserved characters of RFC 3986.
    const bool is_plain = net::is_letter(c) || net::is_digit(c) || c == '-' || c == '_' ||
                          c == '.' || c == '~' || (keeps_slashes && c == '/');
    if (is_plain) {
      encoded += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      encoded += '%';
      // The signature covers the encoded text, so upper case is required.
      encoded += kUpperHex[byte >> 4U];
      encoded += kUpperHex[byte & 15U];
    }
  }
  return encoded;
}

std::string request_target(const UnsignedRequest& request) {
  const std::string query = canonical_query(request.query);
  return percent_encoded(request.path, true) + (query.empty() ? "" : "?" + query);
}

NamedTexts signed_fields(const UnsignedRequest& request, const Credentials& credentials,
                         std::string_view region, std::string_view service,
                         std::chrono::sys_seconds now) {
  const std::string time = amazon_time(now);
  const std::string date = time.substr(0, 8);
  // AWS Signature Version 4 signs a hash of the request with a key that is derived from the secret.
  NamedTexts fields = request.fields;
  fields.emplace_back("x-amz-content-sha256", request.payload_sha256);
  // Part of the signature. A store rejects a time that is too far from its own, so that a recorded
  // request cannot be repeated later.
  fields.emplace_back("x-amz-date", time);
  if (!credentials.token.empty()) fields.emplace_back("x-amz-security-token", credentials.token);

  // The canonical request: lower-case names, trimmed values, sorted. The store computes the same
  // and compares the signatures.
  NamedTexts canonical{{"host", request.host}};
  for (const auto& [name, value] : fields) {
    canonical.emplace_back(net::to_lower(name), net::trim(value));
  }
  std::ranges::sort(canonical);
  std::string lines;
  for (const auto& [name, value] : canonical) lines += name + ":" + value + "\n";
  const std::string names = net::joined(canonical, ";", &NamedTexts::value_type::first);
  const std::string canonical_request =
      request.method + "\n" + percent_encoded(request.path, true) + "\n" +
      canonical_query(request.query) + "\n" + lines + "\n" + names + "\n" + request.payload_sha256;
  const std::string scope =
      date + "/" + std::string(region) + "/" + std::string(service) + "/aws4_request";
  const std::string to_sign =
      std::string(kAlgorithm) + "\n" + time + "\n" + scope + "\n" + sha256_of(canonical_request);
  // The key is valid for one day, region and service only.
  const std::string key =
      hmac(hmac(hmac(hmac("AWS4" + credentials.secret, date), region), service), "aws4_request");
  fields.emplace_back("Authorization",
                      std::string(kAlgorithm) + " Credential=" + credentials.key_id + "/" + scope +
                          ", SignedHeaders=" + names + ", Signature=" + hex_of(hmac(key, to_sign)));
  return fields;
}

}  // namespace disttf::roles
