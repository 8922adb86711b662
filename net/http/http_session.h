// Requests of any method over a persistent connection, to one server after the other: the client
// for object stores.
//
// A request body is borrowed; an answer's body is kept whole, up to a limit. Redirects are not
// followed. Nothing is retried, with one exception: a connection that the server has closed since
// the last answer is opened again. So a request may reach the server twice; a caller for which that
// matters makes the request conditional (If-None-Match).
//
// Runs on the calling thread; use by one thread at a time.
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
  // Without Host, Content-Length and Connection, which are added.
  std::vector<std::pair<std::string, std::string>> fields;
  std::span<const std::byte> body;
  std::size_t max_answer_bytes = std::size_t{64} << 20U;  // larger bodies are refused
  // How long the server may take without a byte once it has the whole request, before and within
  // its answer; nullopt: HttpLimits::stall_timeout.
  std::optional<std::chrono::milliseconds> patience{};
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

class HttpSession {
 public:
  // `interrupt` is borrowed for the session's life. `ca_file`: PEM; empty: find_ca_file().
  HttpSession(HttpLimits limits, std::string ca_file, ProxySettings proxy,
              const Interrupt& interrupt);

  // Throws std::invalid_argument for malformed proxy settings, and std::system_error only when the
  // process is out of file descriptors.
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
  std::optional<HttpConnection> connection_;  // nullopt: the last one has ended
  std::optional<Proxy> proxy_;                // of the connection
  Url peer_;                                  // the server of the connection
  bool is_used_ = false;                      // an answer has come over it
};

}  // namespace disttf::net
