// A small HTTP/1.1 server for one machine: a function answers complete requests.
//
// It listens on Unix sockets and over TCP at the same time. A listener may require a bearer token;
// each of its connections then carries one request. A listener for browsers has a guard
// (net/http/browser_guard.h), and its connections carry one request after the other. Clients that
// are slow, half-open, too large or too many cost bounded memory and time; where they can still
// read it, they get a JSON object {"error": "..."}.
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

// The process at the other end of a Unix socket, as the kernel recorded it at connect()
// (SO_PEERCRED).
struct LocalPeer {
  uid_t uid = 0;
  pid_t pid = 0;  // 0: in no PID namespace that this process sees
};

struct HttpServerOptions {
  std::chrono::milliseconds request_timeout{5000};  // from accept to the request's last byte
  std::chrono::milliseconds write_timeout{10'000};  // limit without progress of the reader
  std::chrono::milliseconds stop_grace{1000};       // for replies under way at stop()
  std::size_t max_connections = 32;                 // for each listener
  // For a listener for browsers: a browser opens six connections, one of them for the page's
  // stream. At the limit the connection that has been idle for longest is closed.
  std::size_t max_browser_connections = 64;
  std::chrono::milliseconds idle_timeout{30'000};  // between two requests of a browser
  // Called for each answered request that is to change something (POST, PUT, PATCH, DELETE), with
  // the reply's status. Of refused ones (401, 403, 421) at most one per `audit_interval` is
  // reported; `untold` is the number of unreported ones before it. May be empty.
  std::function<void(const HttpServerRequest& request, int status, std::size_t untold)> audit = {};
  std::chrono::milliseconds audit_interval{1000};
  // Called once for each connection to a Unix socket, when it is accepted. If it returns a
  // sentence, every request on that connection is answered with 403 and the sentence. Empty: all
  // are served.
  std::function<std::optional<std::string>(const LocalPeer& peer)> refuses_peer = {};
};

// Access over TCP: https with `identity`, if set, and only for clients with one of `tokens`, if
// set.
struct HttpAccess {
  std::shared_ptr<TlsIdentity> identity = nullptr;
  std::shared_ptr<AccessTokens> tokens = nullptr;
};

class HttpServer {
 public:
  // Not called after stop(). An exception from it becomes a 500 with its text.
  using Handler = std::function<HttpReply(const HttpServerRequest&)>;

  // `context` must outlive the server.
  HttpServer(asio::io_context& context, Handler handler, const HttpServerOptions& options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Accepts once the context runs. Child processes do not inherit the socket.
  void listen(asio::local::stream_protocol::acceptor acceptor);
  void listen(asio::ip::tcp::acceptor acceptor, HttpAccess access = {});
  // Requires "Authorization: Bearer TOKEN", else the reply is 401. REQUIRES: `token` is not empty.
  void listen(asio::ip::tcp::acceptor acceptor, const std::string& token);
  // For browsers. `guard` is called on the context's thread.
  void listen(asio::ip::tcp::acceptor acceptor, std::shared_ptr<BrowserGuard> guard,
              std::shared_ptr<TlsIdentity> identity = nullptr);

  // Stops accepting, ends the streams, and closes what is still open after the grace period. Then
  // the context runs out of work.
  void stop();

 private:
  class Connection;
  struct Listener;
  struct State;
  std::shared_ptr<State> state_;  // shared with connections and accept loops
};

}  // namespace disttf::net
