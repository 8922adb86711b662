// Requests of any method to one server after the other, over a connection that stays open between
// them: what a store of objects is spoken to with.
//
// A body that goes out is borrowed; one that comes back is kept whole, up to a bound. Redirects are
// not followed, and nothing is tried again, but for one case: a connection that the server has
// closed since the last answer is opened anew. So a request may reach the server twice; whoever
// cannot bear that says so in the request itself (If-None-Match).
//
// Runs on the calling thread; one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "net/http/http_open.h"

namespace disttf::net {

struct HttpQuestion {
  std::string method = "GET";
  Url url;
  // Without Host, Content-Length and Connection, which are written as they have to be.
  std::vector<std::pair<std::string, std::string>> fields;
  std::span<const std::byte> body;
  std::size_t max_answer_bytes = std::size_t{64} << 20U;  // of the body; more is refused
  // How long the server may be silent once it has all of the request, before its answer or within
  // it; none: as long as HttpLimits::stall_timeout says.
  std::optional<std::chrono::milliseconds> patience{};
};

struct HttpAnswer {
  // None: a whole answer came, whatever its status. Else HttpError, the system's, or
  // std::errc::operation_canceled.
  std::error_code error;
  std::string sentence;  // empty without an error; else one without a full stop, with the URL
  HttpHead head;
  std::string body;
  bool was_repeated = false;  // it was sent twice: the first may have reached the server
};

class HttpSession {
 public:
  // `interrupt` is borrowed for the session's life. `ca_file`: PEM; empty: find_ca_file().
  HttpSession(HttpLimits limits, std::string ca_file, ProxySettings proxy,
              const Interrupt& interrupt);

  // Throws std::invalid_argument where the proxy settings are malformed, and std::system_error only
  // when the process is out of file descriptors.
  [[nodiscard]] HttpAnswer ask(const HttpQuestion& question);

 private:
  [[nodiscard]] MaybeFailure attempt(const HttpQuestion& question, HttpAnswer& answer);
  [[nodiscard]] MaybeFailure send(const HttpQuestion& question);
  [[nodiscard]] MaybeFailure receive(const HttpQuestion& question, HttpAnswer& answer);
  [[nodiscard]] std::string head_text(const HttpQuestion& question) const;

  const HttpLimits limits_;
  const std::string ca_file_;
  const ProxySettings proxy_settings_;
  const Interrupt& interrupt_;
  std::vector<std::byte> buffer_;
  std::optional<HttpConnection> connection_;  // none: the last one ended
  std::optional<Proxy> proxy_;                // of the connection
  Url peer_;                                  // whom it was opened to
  bool is_used_ = false;                      // an answer has come over it
};

}  // namespace disttf::net
