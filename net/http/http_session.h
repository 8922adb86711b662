// The HTTP client: requests of any method, each to a server by TCP or TLS, directly or through a
// proxy, or to a Unix socket. The connection persists, so that the next request to the same server
// needs no new one.
//
// A request body is borrowed. Redirects are not followed (http_client.h follows them). Nothing is
// retried, with one exception: a connection that the server has closed since the last answer is
// opened again. So a request may reach the server twice; a caller for which that matters makes the
// request conditional (If-None-Match).
//
// Runs on the calling thread; use by one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
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

struct HttpQuestion {
  std::string method = "GET";
  Url url;
  std::string socket{};  // the path of a Unix socket, which replaces the URL's host; empty: none
  // Without Host, Content-Length and Connection, which are added. "Connection: close" is allowed.
  std::vector<std::pair<std::string, std::string>> fields;
  std::span<const std::byte> body;
  std::size_t max_answer_bytes = std::size_t{64} << 20U;  // ask() refuses larger bodies
  // How long the server may take for `least_bytes` once it has the whole request, before and within
  // its answer; nullopt: HttpLimits::stall_timeout.
  std::optional<std::chrono::milliseconds> patience{};
  std::size_t least_bytes = 1;
};

struct HttpAnswer {
  // None: a complete answer came, whatever its status. Else HttpError, a system error, or
  // std::errc::operation_canceled.
  std::error_code error;
  std::string sentence;  // empty without an error; else without a full stop, with the URL
  HttpHead head;
  std::string body;
  bool was_repeated = false;  // sent twice: the first one may have reached the server
};

// Receives an answer as it arrives. A failure from a method closes the connection.
class HttpReceiver {
 public:
  virtual ~HttpReceiver() = default;
  // The request is about to be sent.
  virtual void on_connected() {}
  // Called once, before any data.
  [[nodiscard]] virtual MaybeFailure on_head(const HttpHead& head) = 0;
  // Called with the next bytes of the body; borrowed for the call.
  [[nodiscard]] virtual MaybeFailure on_data(std::span<const std::byte> bytes) = 0;
  // How much of the body has come, for a sentence: "4 of 10 bytes".
  [[nodiscard]] virtual std::string position() const = 0;
};

class HttpSession {
 public:
  // `interrupt` is borrowed for the session's life. `ca_file`: PEM; empty: find_ca_file().
  HttpSession(HttpLimits limits, std::string ca_file, ProxySettings proxy,
              const Interrupt& interrupt);

  // Both throw std::invalid_argument for malformed proxy settings, and std::system_error only when
  // the process is out of file descriptors.
  [[nodiscard]] HttpAnswer ask(const HttpQuestion& question);
  // Never sends the request twice.
  [[nodiscard]] MaybeFailure ask(const HttpQuestion& question, HttpReceiver& receiver);

 private:
  [[nodiscard]] MaybeFailure open(const HttpQuestion& question);
  [[nodiscard]] MaybeFailure send(const HttpQuestion& question);
  [[nodiscard]] MaybeFailure receive(const HttpQuestion& question, HttpReceiver& receiver);
  [[nodiscard]] std::string head_text(const HttpQuestion& question) const;

  const HttpLimits limits_;
  const std::string ca_file_;
  const ProxySettings proxy_settings_;
  const Interrupt& interrupt_;
  std::vector<std::byte> buffer_;
  std::optional<HttpConnection> connection_;  // nullopt: the last one has ended
  std::optional<Proxy> proxy_;                // of the connection
  Url peer_;                                  // the server of the connection
  bool is_used_ = false;                      // an answer has come over it
};

// "404 (Not Found)".
[[nodiscard]] std::string status_text(const HttpHead& head);

// One HTTP request over a Unix socket: from a command to a process of the same user.
//
// Synchronous, for a program that does nothing else meanwhile.
struct LocalHttpRequest {
  std::string socket;  // the path of the Unix socket
  std::string method = "GET";
  std::string target;  // percent-encoded where needed
  std::string body;
  std::chrono::seconds read_timeout{10};  // the server's limit for a response; 0: forever
};

// Called with the status and no bytes when the response begins, then with each piece of its body.
using OnLocalBody = std::function<void(int status, std::string_view piece)>;

// Errors: system errors (ENOENT and ECONNREFUSED: no listener), std::errc::timed_out, HttpError for
// invalid HTTP, std::errc::filename_too_long. Throws std::system_error only when the process is out
// of file descriptors.
[[nodiscard]] std::error_code http_over_local(const LocalHttpRequest& request,
                                              const OnLocalBody& on_body);

// Returns no error if a listener accepts connections there, else the reason.
[[nodiscard]] std::error_code try_local(const std::string& socket);

}  // namespace disttf::net
