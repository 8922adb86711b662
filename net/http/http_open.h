// What every HTTP client does first, bounded by the same limits: a connection through the proxy's
// tunnel and TLS where they are asked for, and the head of the answer.
//
// Runs on the calling thread. Nothing is kept between calls.
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
#include "net/transport/interrupt.h"

namespace disttf::net {

struct HttpLimits {
  // Name, connection, proxy and TLS handshake together.
  std::chrono::milliseconds connect_timeout{5000};
  std::chrono::milliseconds stall_timeout{15000};
  std::optional<Deadline> deadline{};  // for everything; none: the two above bound it
};

// Why an operation failed. `why`: the rest of a sentence that begins with the URL and a colon.
struct HttpFailure {
  std::error_code error;
  std::string why;
};
using MaybeFailure = std::optional<HttpFailure>;

[[nodiscard]] Deadline within(const HttpLimits& limits, std::chrono::milliseconds time);

// Of an error of the connection: a time-out becomes `on_timeout`, unless it was the deadline.
// `limit`: how long it was given.
[[nodiscard]] HttpFailure io_failure(const HttpLimits& limits, std::error_code error,
                                     const std::string& what, HttpError on_timeout,
                                     std::chrono::milliseconds limit);

// TCP, the proxy's tunnel and TLS, all within connect_timeout. `ca_file`: PEM; empty:
// find_ca_file().
[[nodiscard]] MaybeFailure open_http(HttpConnection& connection, const Url& url,
                                     const std::optional<Proxy>& proxy, const std::string& ca_file,
                                     const HttpLimits& limits);

// Reads until `parser` has a head. `buffer` is what is read into; bytes of the body that came with
// the head are views of it in `body`.
[[nodiscard]] MaybeFailure read_http_head(HttpConnection& connection, HttpResponseParser& parser,
                                          std::span<std::byte> buffer,
                                          std::vector<std::span<const std::byte>>& body,
                                          Deadline deadline, const HttpLimits& limits);

// "404 (Not Found)".
[[nodiscard]] std::string status_text(const HttpHead& head);

}  // namespace disttf::net
