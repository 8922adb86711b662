// The steps that all HTTP clients share, with the same limits: a connection, the proxy's tunnel and
// TLS where needed, and reading the head of the answer.
//
// Runs on the calling thread. Keeps nothing between calls.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/http/http_connection.h"
#include "net/http/http_error.h"
#include "net/http/http_proxy.h"
#include "net/http/http_response.h"
#include "net/http/url.h"
#include "net/waiting/interrupt.h"

namespace disttf::net {

struct HttpLimits {
  // For name resolution, connection, proxy and TLS handshake together.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds stall_timeout{15000};
  std::optional<Deadline> deadline{};  // for everything; nullopt: only the two above
};

// Why an operation failed. `why`: the rest of a sentence that begins with the URL and a colon.
struct HttpFailure {
  std::error_code error;
  std::string why;
};
using MaybeFailure = std::optional<HttpFailure>;

[[nodiscard]] Deadline within(const HttpLimits& limits, std::chrono::milliseconds time);

// Translates an error of the connection. A time-out becomes `on_timeout`, unless it was the
// deadline. `limit`: the time that the operation had.
[[nodiscard]] HttpFailure io_failure(const HttpLimits& limits, std::error_code error,
                                     const std::string& what, HttpError on_timeout,
                                     std::chrono::milliseconds limit);

// Opens TCP, the proxy's tunnel and TLS, all within connect_timeout. `ca_file`: PEM; empty:
// find_ca_file().
[[nodiscard]] MaybeFailure open_http(HttpConnection& connection, const Url& url,
                                     const std::optional<Proxy>& proxy, const std::string& ca_file,
                                     const HttpLimits& limits);

// Reads until `parser` has a head. `buffer` receives the bytes; `body` gets views into it of the
// body bytes that came with the head.
[[nodiscard]] MaybeFailure read_http_head(HttpConnection& connection, HttpResponseParser& parser,
                                          std::span<std::byte> buffer,
                                          std::vector<std::span<const std::byte>>& body,
                                          Deadline deadline, const HttpLimits& limits);

// "404 (Not Found)".
[[nodiscard]] std::string status_text(const HttpHead& head);

}  // namespace disttf::net
