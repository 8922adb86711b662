// AWS: profiles, and signatures (SigV4) by which a request proves its origin.
//
// Parses ~/.aws/config and ~/.aws/credentials as AWS' own tools do.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disttf::roles {

// The settings of a profile, by their names in lower case. Ignores lines that are not settings, and
// indented ones (settings within a setting).
using ProfileSettings = std::map<std::string, std::string, std::less<>>;
// The value of a setting; empty if there is none.
[[nodiscard]] std::string setting_of(const ProfileSettings& settings, std::string_view name);

// `in_config`: sections are named "[profile NAME]", or "[default]"; else "[NAME]".
[[nodiscard]] ProfileSettings profile_settings(std::string_view text, std::string_view profile,
                                               bool in_config);

// AWS' Signature Version 4, by which a request to S3 proves its origin.

// Secret, except `source`: never shown.
struct Credentials {
  std::string key_id;
  std::string secret;
  std::string token;  // of a session; empty: permanent credentials
  std::optional<std::chrono::sys_seconds> end = std::nullopt;  // of their validity
  std::string source{};  // where they were found: "the variable AWS_ACCESS_KEY_ID"
};

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// The signed parts of a request. All texts are plain; signing encodes them.
struct UnsignedRequest {
  std::string method;
  std::string host;  // with its port, unless that is the scheme's default
  std::string path;  // "/bucket/a key"
  NamedTexts query{};
  NamedTexts fields{};  // header fields, all of which are signed
  std::string payload_sha256;
};

// A time as "20130524T000000Z".
[[nodiscard]] std::string amazon_time(std::chrono::sys_seconds time);

// Encodes every byte except letters, digits and "-_.~" as %XX; `keeps_slashes` excepts slashes.
[[nodiscard]] std::string percent_encoded(std::string_view text, bool keeps_slashes);
// The part of the URL after the host: path and query, encoded, in the signed order.
[[nodiscard]] std::string request_target(const UnsignedRequest& request);

// The header fields to send: those of the request, x-amz-date, x-amz-content-sha256,
// x-amz-security-token and Authorization. `service`: "s3".
[[nodiscard]] NamedTexts signed_fields(const UnsignedRequest& request,
                                       const Credentials& credentials, std::string_view region,
                                       std::string_view service, std::chrono::sys_seconds now);

}  // namespace disttf::roles
