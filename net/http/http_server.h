// A small HTTP/1.1 server for one machine: requests come whole, a function answers them.
//
// It listens on Unix sockets and on loopback at once; a listener may ask for a bearer token. Each
// connection carries one request. Whoever is slow, half-open, too large or too many is refused with
// a JSON object {"error": "..."} where it can still read one, and costs bounded memory and time.
//
// Everything runs on the one thread that runs the io_context; no locks.
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "net/http/http_request.h"

namespace disttf::net {

// Lines that are sent as they come, to one reader. Who writes them never waits: what a slow reader
// leaves is kept up to a bound, and after that left out and counted.
class HttpLineStream {
 public:
  static constexpr std::size_t kMaxPendingBytes = 256 * 1024;

  explicit HttpLineStream(asio::io_context& context);

  void append(std::string_view line);  // without its end
  void end();                          // no more lines; those that wait are still sent

  // Waits for lines and moves them to `text`. False: there will be none any more.
  asio::awaitable<bool> take(std::string& text);

 private:
  asio::steady_timer wake_;
  std::string pending_;
  std::size_t left_out_ = 0;  // lines
  bool ended_ = false;
};

struct HttpReply {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // Comes after the body, which it makes chunked; null: none.
  std::shared_ptr<HttpLineStream> lines = nullptr;
};

// {"error": sentence}
[[nodiscard]] HttpReply error_reply(int status, std::string_view sentence);

struct HttpServerOptions {
  std::chrono::milliseconds request_timeout{5000};  // from accept to the request's last byte
  std::chrono::milliseconds write_timeout{10'000};  // a reader that takes nothing for so long
  std::chrono::milliseconds stop_grace{1000};       // for replies under way at stop()
  std::size_t max_connections = 32;                 // of each listener
};

class HttpServer {
 public:
  // Never called after stop(). What it throws becomes a 500 with its sentence.
  using Handler = std::function<HttpReply(const HttpServerRequest&)>;

  // `context` must outlive the server.
  HttpServer(asio::io_context& context, Handler handler, const HttpServerOptions& options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Accepts once the context runs. The socket is not handed to child processes.
  void listen(asio::local::stream_protocol::acceptor acceptor);
  // `token`: "Authorization: Bearer TOKEN" must be sent, or the reply is 401. REQUIRES: not empty.
  void listen(asio::ip::tcp::acceptor acceptor, const std::string& token);

  // Accepts nobody any more, ends the streams, and closes what is still open after the grace. The
  // context runs out of work then.
  void stop();

 private:
  class Connection;
  struct Listener;
  struct State;
  std::shared_ptr<State> state_;  // connections and accept loops hold it too
};

}  // namespace disttf::net
