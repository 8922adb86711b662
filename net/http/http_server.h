// A small HTTP/1.1 server for one machine: requests come whole, a function answers them.
//
// It listens on Unix sockets and over tcp at once; a listener may ask for a bearer token, and
// each connection then carries one request. A listener for browsers has a guard
// (net/http/browser_guard.h), and its connections carry one request after the other. Whoever is
// slow, half-open, too large or too many is refused with a JSON object {"error": "..."} where it
// can still read one, and costs bounded memory and time.
//
// Everything runs on the one thread that runs the io_context; no locks.
#pragma once

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "net/http/access_tokens.h"
#include "net/http/browser_guard.h"
#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/tls_identity.h"

namespace disttf::net {

// The process at the other end of a Unix socket, as the kernel recorded it when the process
// connected (SO_PEERCRED).
struct LocalPeer {
  uid_t uid = 0;
  pid_t pid = 0;  // 0: the process is in none of the PID namespaces that this process sees
};

struct HttpServerOptions {
  std::chrono::milliseconds request_timeout{5000};  // from accept to the request's last byte
  std::chrono::milliseconds write_timeout{10'000};  // a reader that takes nothing for so long
  std::chrono::milliseconds stop_grace{1000};       // for replies under way at stop()
  std::size_t max_connections = 32;                 // of each listener
  // Of a listener for browsers: one has six, and the page's stream is one of them. Where there are
  // so many, whoever has been silent for longest makes room.
  std::size_t max_browser_connections = 64;
  std::chrono::milliseconds idle_timeout{30'000};  // between two requests of a browser
  // Told of each request that is to change something (POST, PUT, PATCH, DELETE), once it is
  // answered: who has asked for what, and the reply's status; of those that were refused (401, 403,
  // 421) one each `audit_interval` at most, with the number of those before it of which nobody was
  // told. May be empty.
  std::function<void(const HttpServerRequest& request, int status, std::size_t untold)> audit = {};
  std::chrono::milliseconds audit_interval{1000};
  // Called once for each connection to a Unix socket, when it is accepted. A sentence: every
  // request on that connection is answered with 403 and the sentence. Empty: all are served.
  std::function<std::optional<std::string>(const LocalPeer& peer)> refuses_peer = {};
};

// By whom a server over tcp is asked: all of it over https as `identity`, where there is one, and
// by those alone who have one of `tokens`, where there are.
struct HttpAccess {
  std::shared_ptr<TlsIdentity> identity = nullptr;
  std::shared_ptr<AccessTokens> tokens = nullptr;
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
  void listen(asio::ip::tcp::acceptor acceptor, HttpAccess access = {});
  // `token`: "Authorization: Bearer TOKEN" must be sent, or the reply is 401. REQUIRES: not empty.
  void listen(asio::ip::tcp::acceptor acceptor, const std::string& token);
  // For browsers. `guard` is asked on the context's thread.
  void listen(asio::ip::tcp::acceptor acceptor, std::shared_ptr<BrowserGuard> guard,
              std::shared_ptr<TlsIdentity> identity = nullptr);

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
