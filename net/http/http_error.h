// Errors of a download, apart from system errors.
#pragma once

#include <system_error>

namespace disttf::net {

enum class HttpError {
  kBadResponse = 1,      // the bytes are not an HTTP/1.x response
  kHeaderTooLarge,       // a larger header than any correct server sends
  kBadStatus,            // neither a body nor a redirect
  kBadRedirect,          // no Location, or none with an http or https URL
  kInsecureRedirect,     // https -> http
  kTooManyRedirects,     // more than allowed, or in a circle
  kEncodedBody,          // a Content-Encoding although none was requested
  kTooLarge,             // more than max_bytes
  kShortBody,            // the connection ended before the body did
  kStalled,              // too few bytes for too long
  kConnectTimeout,       // no connection within connect_timeout
  kBadRange,             // 206 with another range than the requested one
  kRangeNotSatisfiable,  // 416: the kept part does not match the server's file
  kProxyRefused,         // the proxy did not open the tunnel
  kNoCaFile,             // https without a file of certificate authorities
  kBadCaFile,            // that file cannot be used
  kBadCertificate,       // the certificate does not match the server's name
};

[[nodiscard]] const std::error_category& http_category() noexcept;
[[nodiscard]] std::error_code make_error_code(HttpError error) noexcept;

}  // namespace disttf::net

template <>
struct std::is_error_code_enum<disttf::net::HttpError> : std::true_type {};
