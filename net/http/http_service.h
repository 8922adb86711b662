// An HTTP/1.1 server: many connections, bodies of megabytes, deferred answers, streams of lines, at
// TCP and Unix sockets. (net/http/http_responder.h answers by a function on an io_context's
// thread.)
//
// Several threads, each with its own epoll set, connections and handler, and no shared state: one
// thread reads, answers and writes a request. The first thread accepts and passes a new connection
// to the thread with the fewest. With `is_quick` an additional thread accepts, reads the first head
// of each connection, answers it if it is quick, and otherwise passes the connection on, so
// liveness can be checked while all others compute. A connection that waits for an answer is not
// read, so a pipelined request waits in the socket. With an identity a listener is https; the
// handshake counts as the beginning of the first request and shares its timeout. Clients that are
// slow, half-open, too large or too many cost bounded time and memory; where they can still read
// it, they get a JSON object {"error": "..."}.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/http/http_reply.h"
#include "net/http/http_request.h"
#include "net/http/tls_identity.h"
#include "net/waiting/descriptor.h"

namespace disttf::net {

struct HttpServiceOptions {
  std::size_t threads = 1;
  std::size_t max_body_bytes = kMaxRequestBodyBytes;
  // Limit for all incomplete bodies that a thread holds.
  std::size_t max_held_bytes = std::size_t{256} << 20U;
  std::chrono::milliseconds request_timeout{20'000};  // from a request's first byte to its last
  std::chrono::milliseconds write_timeout{20'000};    // limit without progress of the reader
  std::chrono::milliseconds idle_timeout{120'000};    // between two requests
  std::chrono::milliseconds stop_grace{5000};         // for what is under way at stop()
  // Paths that are answered at once, however busy the threads are: by a thread of its own, which
  // reads the first request of each connection. null: there is no such thread.
  std::function<bool(std::string_view path)> is_quick = nullptr;
};

// The process at the other end of a Unix socket, as the kernel recorded it at connect()
// (SO_PEERCRED).
struct LocalPeer {
  uid_t uid = 0;
  pid_t pid = 0;  // 0: in no PID namespace that this process sees
};

// Which requests a connection carries.
enum class HttpUse : std::uint8_t {
  kService,  // one after the other, also before the answers to earlier ones
  // One after the other. Every reply has the security fields of BrowserGuard::seal(). At the limit
  // of connections the one that has waited for longest for a request is closed, so that idle ones
  // do not block others: a browser opens another one when it needs it.
  kBrowser,
  kCommand,  // one
};

// An address of the service, and who may use it.
struct HttpListenerOptions {
  HttpUse use = HttpUse::kService;
  std::size_t max_connections = 4096;
  std::shared_ptr<TlsIdentity> identity = nullptr;  // for https; null: http
  // Returns the reply to a request that is refused; nullopt: the handler gets the request. Called
  // once for each request, before its body is stored. It may clear `may_change`. null: none is
  // refused.
  std::function<std::optional<HttpReply>(HttpServerRequest& request)> refuse = nullptr;
  // Called once for each connection to a Unix socket, when it is accepted. If it returns a
  // sentence, every request on that connection is answered with 403 and the sentence. null: all are
  // served.
  std::function<std::optional<std::string>(const LocalPeer& peer)> refuses_peer = nullptr;
};

// A complete request and the destination of its answer. Belongs to one thread.
class HttpExchange {
 public:
  // State that a handler keeps for a connection between requests.
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
  // When its last byte had come; the epoch for a request that is refused before it is complete.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point begun() const noexcept = 0;
  // The client's address: "192.0.2.1".
  [[nodiscard]] virtual std::string peer() const = 0;
  // The same with the port, "192.0.2.1:4711", or "uid 1000, pid 4711" on this machine.
  [[nodiscard]] virtual std::string client() const = 0;
  // Call once for each ask(); the request is invalid afterwards. The reply's lines, if any, belong
  // to the thread of the exchange.
  virtual void answer(const HttpReply& reply) = 0;

  std::unique_ptr<Attachment> attachment;
};

// Belongs to one thread, which calls it.
class HttpServiceHandler {
 public:
  HttpServiceHandler() = default;
  virtual ~HttpServiceHandler() = default;
  HttpServiceHandler(const HttpServiceHandler&) = delete;
  HttpServiceHandler& operator=(const HttpServiceHandler&) = delete;

  // Handles a request: answers it now or in work(). The exchange lives until it is answered. An
  // exception before the answer becomes a 500 with its text.
  virtual void ask(HttpExchange& exchange) = 0;
  // Called when all requests that have arrived were passed to ask(). True: there is more to do at
  // once, and work() is called again after the sockets were polled. Must not throw.
  virtual bool work() = 0;
  // Called for each reply that is sent, including those to invalid requests. `exchange` has what is
  // known.
  virtual void answered(const HttpExchange& exchange, int status, std::size_t bytes) = 0;
};

class HttpService {
 public:
  using MakeHandler = std::function<std::unique_ptr<HttpServiceHandler>(std::size_t thread)>;

  // Calls `make_handler` once for each thread. If there is `is_quick`, its thread is the last one
  // and gets only quick requests. Throws std::system_error.
  HttpService(const HttpServiceOptions& options, const MakeHandler& make_handler);
  ~HttpService();
  HttpService(const HttpService&) = delete;
  HttpService& operator=(const HttpService&) = delete;

  // Takes over the acceptor's socket. Call before run(), or on the thread that calls turn(). Throws
  // std::system_error.
  template <class Acceptor>
  void listen(Acceptor acceptor, HttpListenerOptions options) {
    listen(Descriptor(acceptor.release()), std::move(options));
  }
  // options.threads, plus one with `is_quick`.
  [[nodiscard]] std::size_t threads() const noexcept;
  // The body of a thread, until stop(); call once for each. Throws std::system_error.
  void run(std::size_t thread);
  // For a service of one thread, instead of run(): handles what is there without waiting. Call when
  // descriptor() is readable, and after the returned time at the latest (max(): not for the time
  // alone). nullopt: stop() was called, and all connections are closed. Throws likewise.
  [[nodiscard]] int descriptor() const noexcept;
  [[nodiscard]] std::optional<std::chrono::milliseconds> turn();

  // Callable from any thread. drain(): every further reply is the last of its connection; new
  // connections are still served. stop(): stops accepting, answers what is under way, and closes.
  void drain() noexcept;
  void stop() noexcept;

  [[nodiscard]] std::size_t connections() const noexcept;

 private:
  class Connection;
  class Loop;
  struct Listener;
  struct Shared;
  void listen(Descriptor socket, HttpListenerOptions options);

  std::unique_ptr<Shared> shared_;
};

}  // namespace disttf::net
