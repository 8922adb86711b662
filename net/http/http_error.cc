#include "net/http/http_error.h"

#include <string>

namespace disttf::net {
namespace {

class HttpCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "http"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<HttpError>(code)) {
      case HttpError::kBadResponse:
        return "not an HTTP response";
      case HttpError::kHeaderTooLarge:
        return "the response header is too large";
      case HttpError::kBadStatus:
        return "the server answered with an error";
      case HttpError::kBadRedirect:
        return "the redirect leads to no usable URL";
      case HttpError::kInsecureRedirect:
        return "the redirect leads from https to http";
      case HttpError::kTooManyRedirects:
        return "too many redirects";
      case HttpError::kEncodedBody:
        return "the body has a content encoding that was not asked for";
      case HttpError::kTooLarge:
        return "the response is larger than allowed";
      case HttpError::kShortBody:
        return "the connection ended before the body did";
      case HttpError::kStalled:
        return "the transfer stalled";
      case HttpError::kConnectTimeout:
        return "connecting took too long";
      case HttpError::kBadRange:
        return "the server sent another range than the one asked for";
      case HttpError::kRangeNotSatisfiable:
        return "the server does not have the range asked for";
      case HttpError::kProxyRefused:
        return "the proxy refused the tunnel";
      case HttpError::kNoCaFile:
        return "no file of certificate authorities";
      case HttpError::kBadCaFile:
        return "the file of certificate authorities cannot be used";
      case HttpError::kBadCertificate:
        return "the server's certificate is not accepted";
    }
    return "unknown http error " + std::to_string(code);
  }
};

}  // namespace

const std::error_category& http_category() noexcept {
  static const HttpCategory category;
  return category;
}

std::error_code make_error_code(HttpError error) noexcept {
  return {static_cast<int>(error), http_category()};
}

}  // namespace disttf::net
