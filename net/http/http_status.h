// The HTTP status codes (RFC 9110, section 15; 429, 431: RFC 6585) that disttf sends or checks.
#pragma once

namespace disttf::net::http_status {

inline constexpr int kOk = 200;
inline constexpr int kPartialContent = 206;
inline constexpr int kMovedPermanently = 301;
inline constexpr int kFound = 302;
inline constexpr int kSeeOther = 303;
inline constexpr int kNotModified = 304;
inline constexpr int kTemporaryRedirect = 307;
inline constexpr int kPermanentRedirect = 308;
inline constexpr int kBadRequest = 400;
inline constexpr int kUnauthorized = 401;
inline constexpr int kForbidden = 403;
inline constexpr int kNotFound = 404;
inline constexpr int kMethodNotAllowed = 405;
inline constexpr int kRequestTimeout = 408;
inline constexpr int kConflict = 409;
inline constexpr int kGone = 410;
inline constexpr int kContentTooLarge = 413;
inline constexpr int kUnsupportedMediaType = 415;
inline constexpr int kRangeNotSatisfiable = 416;
inline constexpr int kExpectationFailed = 417;
inline constexpr int kMisdirected = 421;
inline constexpr int kTooManyRequests = 429;
inline constexpr int kHeadTooLarge = 431;
inline constexpr int kServerError = 500;  // the first of the server errors
inline constexpr int kNotImplemented = 501;
inline constexpr int kBadGateway = 502;
inline constexpr int kUnavailable = 503;
inline constexpr int kGatewayTimeout = 504;
inline constexpr int kVersionNotSupported = 505;

}  // namespace disttf::net::http_status
