// AWS' Signature Version 4: what a request to S3 carries so that its server believes it.
//
// Pure functions; callable from any thread.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace disttf::roles {

// None of these is ever shown, but for `source`.
struct Credentials {
  std::string key_id;
  std::string secret;
  std::string token;  // of a session; empty: they are lasting ones
  std::optional<std::chrono::sys_seconds> end = std::nullopt;  // when they are of no use any more
  std::string source{};  // where they were found: "the variable AWS_ACCESS_KEY_ID"
};

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

// What is signed. All texts are as they are meant; encoding is done here.
struct UnsignedRequest {
  std::string method;
  std::string host;  // with its port, where that is not the scheme's own
  std::string path;  // "/bucket/a key"
  NamedTexts query{};
  NamedTexts fields{};  // header fields, all of which are signed
  std::string payload_sha256;
};

// A day and a time, as "20130524T000000Z".
[[nodiscard]] std::string amazon_time(std::chrono::sys_seconds time);

// Every byte but letters, digits and "-_.~" as %XX; slashes as they are where `keeps_slashes`.
[[nodiscard]] std::string percent_encoded(std::string_view text, bool keeps_slashes);
// What follows the host in the URL: path and query, encoded, in the order that is signed.
[[nodiscard]] std::string request_target(const UnsignedRequest& request);

// The fields that are to be sent with it: those of the request, x-amz-date, x-amz-content-sha256,
// x-amz-security-token and Authorization. `service`: "s3".
[[nodiscard]] NamedTexts signed_fields(const UnsignedRequest& request,
                                       const Credentials& credentials, std::string_view region,
                                       std::string_view service, std::chrono::sys_seconds now);

}  // namespace disttf::roles
