// An HTTP/1.1 server for services: many connections, one request after the other on each, bodies of
// megabytes, answers that may come later. (net/http/http_server.h is the one for pages and
// commands.)
//
// Some threads, each with its own epoll set, connections and handler, and nothing between them: a
// request is read, answered and written by one thread. The first one accepts, and hands a new
// connection to the thread that has fewest. With `is_quick` a thread besides accepts, reads the
// first head of each connection, answers it where it is quick, and else hands the connection over:
// whether the service is alive can be asked while all others compute. A connection that waits for
// an answer is not read from, so a request that follows waits in the socket. With an identity all
// of it is https; a handshake is the beginning of the first request, and has its time. What is
// slow, half-open, too large or too many costs bounded time and memory.
#pragma once

#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/http/access_tokens.h"
#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/tls_identity.h"

namespace disttf::net {

struct HttpServiceOptions {
  std::size_t threads = 1;
  std::size_t max_body_bytes = kMaxRequestBodyBytes;
  std::size_t max_connections = 4096;
  // Of all bodies together that a thread holds and that are not whole.
  std::size_t max_held_bytes = std::size_t{256} << 20U;
  std::chrono::milliseconds request_timeout{20'000};  // from a request's first byte to its last
  std::chrono::milliseconds write_timeout{20'000};    // a reader that takes nothing for so long
  std::chrono::milliseconds idle_timeout{120'000};    // between two requests
  std::chrono::milliseconds stop_grace{5000};         // for what is under way at stop()
  std::shared_ptr<TlsIdentity> identity = nullptr;    // https as this one; null: http
  // Who has none of these is answered 401, but on what is open to all; null: none is asked for.
  std::shared_ptr<AccessTokens> tokens = nullptr;
  std::function<bool(std::string_view path)> is_open = nullptr;
  // Why a request is not answered, whatever it asks, but for what is open to all; null: each is.
  std::function<std::optional<HttpReply>(const HttpServerRequest& request)> refuse = nullptr;
  // What is answered at once, however busy the threads are: by a thread of its own, which reads the
  // first request of each connection. null: there is no such thread.
  std::function<bool(std::string_view path)> is_quick = nullptr;
};

// A request that has come whole, and where its answer goes. Of one thread.
class HttpExchange {
 public:
  // What a handler keeps for a connection, from one request to the next.
  class Attachment {
   public:
    Attachment() = default;
    virtual ~Attachment() = default;
    Attachment(const Attachment&) = delete;
    Attachment& operator=(const Attachment&) = delete;
  };

  HttpExchange() = default;
  virtual ~HttpExchange() = default;
  HttpExchange(const HttpExchange&) = delete;
  HttpExchange& operator=(const HttpExchange&) = delete;

  [[nodiscard]] virtual const HttpServerRequest& request() const noexcept = 0;
  // When its last byte had come; the epoch of a request that is refused before it is whole.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point begun() const noexcept = 0;
  // "192.0.2.1", of whoever asks.
  [[nodiscard]] virtual std::string peer() const = 0;
  // Once for each ask(); the request is gone afterwards. REQUIRES: no lines in it.
  virtual void answer(const HttpReply& reply) = 0;

  std::unique_ptr<Attachment> attachment;
};

// Of one thread, which calls it.
class HttpServiceHandler {
 public:
  HttpServiceHandler() = default;
  virtual ~HttpServiceHandler() = default;
  HttpServiceHandler(const HttpServiceHandler&) = delete;
  HttpServiceHandler& operator=(const HttpServiceHandler&) = delete;

  // A request, to be answered now or in work(). The exchange lives until it is. What this throws
  // before it has answered becomes a 500 with its sentence.
  virtual void ask(HttpExchange& exchange) = 0;
  // Called when all that has come was handed over. True: there is more to do at once, and it is
  // called again after another look at the sockets. Must not throw.
  virtual bool work() = 0;
  // Each reply that is sent, also those to what is no request. `exchange` has what is known.
  virtual void answered(const HttpExchange& exchange, int status, std::size_t bytes) = 0;
};

class HttpService {
 public:
  using MakeHandler = std::function<std::unique_ptr<HttpServiceHandler>(std::size_t thread)>;

  // Takes the acceptor's socket. `make_handler` is called once for each thread, by the constructor;
  // the last one is that of `is_quick`, where there is one, and is asked nothing else.
  // Throws std::system_error.
  HttpService(asio::ip::tcp::acceptor acceptor, const HttpServiceOptions& options,
              const MakeHandler& make_handler);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // options.threads, and one more with `is_quick`.
  [[nodiscard]] std::size_t threads() const noexcept;
  // The body of a thread, until stop(); once for each. Throws std::system_error.
  void run(std::size_t thread);

  // From any thread. drain(): every further reply is the last of its connection; new ones are still
  // served. stop(): accepts nobody any more, answers what is under way, and closes.
  void drain() noexcept;
  void stop() noexcept;

  [[nodiscard]] std::size_t connections() const noexcept;

 private:
  class Connection;
  class Loop;
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

}  // namespace disttf::net
