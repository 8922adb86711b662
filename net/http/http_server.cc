#include "net/http/http_server.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/generic/stream_protocol.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>
#include <cstring>
#include <exception>
#include <list>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "net/http/http_status.h"
#include "net/transport/as_tuple.h"
#include "net/transport/resolve.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;
using Socket = asio::generic::stream_protocol::socket;

// How long accepting pauses when the process has no descriptors left.
constexpr milliseconds kAcceptPause{100};
constexpr std::string_view kServerContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::string_view kEndOfChunks = "0\r\n\r\n";

std::string chunk(std::string_view text) {
  if (text.empty()) return {};  // an empty chunk would be the end
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

// nullopt: the kernel does not report it.
std::optional<LocalPeer> local_peer_of(Socket& socket) {
  ucred who{};
  socklen_t size = sizeof(who);
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) {
    return std::nullopt;
  }
  return LocalPeer{.uid = who.uid, .pid = who.pid};
}

// For a process of this machine the kernel reports user and process id.
std::string peer_of(Socket& socket) {
  std::error_code error;
  const auto endpoint = socket.remote_endpoint(error);
  asio::ip::tcp::endpoint of_tcp;
  if (!error && endpoint.protocol().family() == AF_UNIX) {
    if (const std::optional<LocalPeer> who = local_peer_of(socket)) {
      return fmt::format("uid {}, pid {}", who->uid, who->pid);
    }
  } else if (!error && endpoint.size() <= of_tcp.capacity()) {
    std::memcpy(of_tcp.data(), endpoint.data(), endpoint.size());
    return endpoint_text(of_tcp);
  }
  return "a peer that has gone";
}

bool changes_something(const HttpServerRequest& request) {
  return request.method == "POST" || request.method == "PUT" || request.method == "PATCH" ||
         request.method == "DELETE";
}

}  // namespace

struct HttpServer::Listener {
  std::variant<asio::local::stream_protocol::acceptor, asio::ip::tcp::acceptor> acceptor;
  std::string token = {};                          // empty: none is required
  std::shared_ptr<AccessTokens> tokens = nullptr;  // null: none is required
  std::shared_ptr<BrowserGuard> guard = nullptr;
  std::shared_ptr<TlsIdentity> identity = nullptr;  // null: http
  std::size_t connections = 0;
};

struct HttpServer::State : std::enable_shared_from_this<State> {
  State(asio::io_context& io, Handler function, HttpServerOptions limits)
      : context(io), handler(std::move(function)), options(std::move(limits)), grace(io) {}

  void listen(std::unique_ptr<Listener> listener);
  asio::awaitable<void> accept_loop(Listener& listener);
  void stop();
  void forget(const Connection* connection);
  void audit(const HttpServerRequest& request, int status);
  [[nodiscard]] std::size_t most_connections(const Listener& listener) const;
  bool make_room(const Listener& listener);

  asio::io_context& context;
  Handler handler;
  HttpServerOptions options;
  asio::steady_timer grace;  // runs after stop()
  std::list<Listener> listeners;
  std::vector<Connection*> connections;  // each owns itself until it is over; oldest first
  bool stopping = false;
  std::optional<Clock::time_point> audited_refusal;  // time of the last one
  std::size_t unaudited = 0;                         // refusals since then
};

// A request and its reply; for a browser, one after the other. Owned by its own coroutines.
class HttpServer::Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<State> state, Listener& listener, Socket socket)
      : state_(std::move(state)),
        listener_(listener),
        socket_(std::move(socket)),
        // Determined while the peer still exists: after it has gone, the kernel no longer reports
        // who it was.
        peer_(peer_of(socket_)),
        refusal_(refusal_of_peer()),
        deadline_(state_->context) {
    if (listener_.identity) {
      std::error_code ignored;
      // TLS reads and writes the descriptor itself, so it must not block.
      socket_.native_non_blocking(true, ignored);
      tls_ = TlsAccepted::over(socket_.native_handle(), *listener_.identity);
      if (!tls_) socket_.close(ignored);  // no memory
    }
    ++listener_.connections;
    state_->connections.push_back(this);
  }
  ~Connection() {
    --listener_.connections;
    state_->forget(this);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start(bool is_one_too_many) {
    asio::co_spawn(
        // The callables keep this object alive until the coroutine ends.
        state_->context,
        [self = shared_from_this(), is_one_too_many] { return self->serve(is_one_too_many); },
        // An exception here is a lack of memory. The client sees a lost connection.
        [self = shared_from_this()](const std::exception_ptr&) { self->close(); });
  }
  // Ends a stream, and closes an idle connection.
  void wind_down() {
    if (lines_) lines_->end();
    if (is_idle()) close();
  }
  void close() {
    std::error_code ignored;
    is_reading_ = false;
    deadline_.cancel();
    socket_.close(ignored);
    if (lines_) lines_->end();
  }
  [[nodiscard]] bool is_of(const Listener& listener) const { return &listener_ == &listener; }
  // Whether it waits for a request, or for the rest of one.
  [[nodiscard]] bool is_reading() const { return is_reading_; }

 private:
  // Whether it waits for another request of which no byte has come.
  [[nodiscard]] bool is_idle() const { return is_reading_ && replies_ > 0 && !parser_->begun(); }

  asio::awaitable<void> serve(bool is_one_too_many) {
    do {
      HttpReply reply;
      stays_open_ = false;
      // A surplus client gets a reply without having its request read.
      if (is_one_too_many) {
        reply = error_reply(http_status::kUnavailable, refusal_sentence(http_status::kUnavailable));
      } else if (const std::optional<int> refusal = co_await read_request()) {
        if (tls_ && tls_->is_plain_http()) {
          tls_.reset();  // such a client can read no other answer
          co_await write_reply(error_reply(http_status::kBadRequest, kHttpsAlone));
          break;
        }
        // The client has gone, or cannot be sent an answer.
        if (*refusal == 0 || (tls_ && !tls_->is_shaken())) co_return;
        reply = error_reply(*refusal, refusal_sentence(*refusal));
      } else {
        reply = answer();
        // Only browsers keep connections; the other clients make one request each.
        stays_open_ = listener_.guard && parser_->may_stay_open() && !state_->stopping;
      }
      if (listener_.guard) BrowserGuard::seal(reply);
      lines_ = reply.lines;
      if (lines_ && state_->stopping) lines_->end();
      ++replies_;
      if (!co_await write_reply(std::move(reply))) co_return;
      co_await let_others();
    } while (stays_open_ && !state_->stopping);
    if (!stays_open_) co_await linger();
  }

  // nullopt: it is complete. 0: the peer has gone. Else the status of the refusal.
  asio::awaitable<std::optional<int>> read_request() {
    std::array<char, 4096> buffer{};
    parser_.emplace();
    timed_out_ = false;
    expire_after(replies_ == 0 ? state_->options.request_timeout : state_->options.idle_timeout,
                 // The first request must arrive soon after the connect; a browser may take longer
                 // until the next one.
                 /*closes=*/false);
    is_reading_ = true;
    std::optional<int> refusal;
    bool has_continued = false;
    while (!refusal && !parser_->complete()) {
      auto [error, size] = co_await read_some(buffer);
      const bool was_idle = is_idle();
      if (timed_out_) {
        // An idle connection is closed without a reply: no request is being answered.
        refusal = was_idle ? 0 : http_status::kRequestTimeout;
      } else if (error) {
        refusal = 0;
      } else if (const int status = parser_->feed({buffer.data(), size}); status != 0) {
        refusal = status;
        // The first byte of a request starts its own time limit.
      } else if (was_idle) {
        expire_after(state_->options.request_timeout, /*closes=*/false);
      }
      const bool is_awaited = !refusal && parser_->head_complete() && !parser_->complete() &&
                              parser_->expects_continue();
      if (is_awaited && !std::exchange(has_continued, true)) {
        if (co_await write_all(kServerContinue)) refusal = 0;
      }
    }
    is_reading_ = false;
    deadline_.cancel();
    co_return refusal;
  }

  // As the socket's own function.
  asio::awaitable<std::pair<std::error_code, std::size_t>> read_some(std::span<char> into) {
    while (tls_ && socket_.is_open()) {  // a closed socket's descriptor may be reused already
      std::error_code error;
      const std::size_t size = tls_->read_some(into, error);
      if (error != asio::error::would_block) co_return std::pair(error, size);
      if (const std::error_code failed = co_await wait()) co_return std::pair(failed, 0);
    }
    auto [error, size] =
        co_await socket_.async_read_some(asio::buffer(into.data(), into.size()), kAsTuple);
    co_return std::pair(error, size);
  }

  // Writes all of `text`.
  asio::awaitable<std::error_code> write_all(std::string_view text) {
    while (tls_ && socket_.is_open() && !text.empty()) {
      std::error_code error;
      text.remove_prefix(tls_->write_some(text, error));
      if (error == asio::error::would_block) error = co_await wait();
      if (error) co_return error;
    }
    if (tls_ && text.empty()) co_return std::error_code();
    // Also reached after close(): the socket then reports the error.
    auto [error, size] = co_await asio::async_write(socket_, asio::buffer(text), kAsTuple);
    co_return error;
  }

  // TLS reads buffered bytes without waiting, so a peer that keeps the buffer full would keep the
  // thread.
  asio::awaitable<void> let_others() {
    if (tls_) co_await asio::post(state_->context, asio::use_awaitable);
  }

  // Waits for the event that TLS waits for.
  asio::awaitable<std::error_code> wait() {
    const auto what = tls_->waits_for() == POLLOUT ? Socket::wait_write : Socket::wait_read;
    auto [error] = co_await socket_.async_wait(what, kAsTuple);
    co_return error;
  }

  HttpReply answer() const {
    // A copy, because the handler may change it while the parser still belongs to the connection.
    HttpServerRequest request = parser_->request();
    request.peer = peer_;
    HttpReply reply = answer(request);
    state_->audit(request, reply.status);
    return reply;
  }

  // The sentence with which every request of this connection is refused; nullopt: none.
  [[nodiscard]] std::optional<std::string> refusal_of_peer() {
    const bool is_local =
        std::holds_alternative<asio::local::stream_protocol::acceptor>(listener_.acceptor);
    if (!is_local || !state_->options.refuses_peer) return std::nullopt;
    const std::optional<LocalPeer> peer = local_peer_of(socket_);
    if (!peer) return "the kernel does not identify the requesting process";
    return state_->options.refuses_peer(*peer);
  }

  HttpReply answer(HttpServerRequest& request) const {
    if (refusal_) return error_reply(http_status::kForbidden, *refusal_);
    request.may_change = true;  // a client that may make requests here may change the run
    if (listener_.guard) {
      if (std::optional<HttpReply> reply = listener_.guard->check(request)) {
        return *std::move(reply);
      }
    } else if (!listener_.token.empty() && !is_bearer(request.authorization, listener_.token)) {
      return error_reply(http_status::kUnauthorized, refusal_sentence(http_status::kUnauthorized));
    } else if (listener_.tokens && !listener_.tokens->admit(request.authorization)) {
      return unauthorized_reply();
    }
    // After the access checks, so that only authorised clients receive this reason.
    if (state_->stopping) return error_reply(http_status::kUnavailable, "the run is ending");
    try {
      return state_->handler(request);
    } catch (const std::exception& error) {
      return error_reply(http_status::kServerError, error.what());
    }
  }

  // Returns false when the connection is unusable.
  asio::awaitable<bool> write_reply(HttpReply reply) {
    // The end of a stream is the end of its connection for clients without chunks.
    if (reply.lines) stays_open_ = false;
    const bool takes_chunks = !parser_ || !parser_->request().is_http10;
    const std::string head = head_text(reply, stays_open_, takes_chunks);
    if (parser_ && parser_->request().method == "HEAD") {
      lines_.reset();
      co_return co_await write(head);
    }
    if (!reply.lines) co_return co_await write(head + reply.body);
    const auto piece = [takes_chunks](std::string text) {
      return takes_chunks ? chunk(text) : std::move(text);
    };
    bool open = co_await write(head + piece(std::move(reply.body)));
    // From here on the connection reads only in order to detect the reader's end.
    watch_for_end();
    while (open) {
      std::string text;
      if (!co_await reply.lines->take(text)) break;
      open = co_await write(piece(std::move(text)));
    }
    if (open && takes_chunks) open = co_await write(std::string(kEndOfChunks));
    co_return open;
  }

  // Returns false when the connection is unusable. Writing 256 KiB to an active reader takes far
  // less than the timeout.
  asio::awaitable<bool> write(std::string text) {
    expire_after(state_->options.write_timeout, /*closes=*/true);
    const std::error_code error = co_await write_all(text);
    deadline_.cancel();
    co_return !error;
  }

  // Detects at once that the reader of a stream has gone, and not with the next line.
  void watch_for_end() {
    asio::co_spawn(
        state_->context,
        [self = shared_from_this()]() -> asio::awaitable<void> {
          std::array<char, 256> ignored{};
          std::error_code error;
          while (!error) {
            std::tie(error, std::ignore) = co_await self->read_some(ignored);
            co_await self->let_others();
          }
          if (self->lines_) self->lines_->end();
        },
        asio::detached);
  }

  // Discards input for a moment: closing with unread bytes would reset the connection, and the
  // reply could be lost.
  asio::awaitable<void> linger() {
    std::error_code error;
    if (tls_) tls_->finish();
    socket_.shutdown(Socket::shutdown_send, error);
    // The input of a stream has been read all along, see watch_for_end().
    if (error || lines_) co_return;
    constexpr milliseconds kLinger{500};
    constexpr std::size_t kMostBytes = 4 * kMaxRequestBodyBytes;
    expire_after(kLinger, /*closes=*/true);
    std::array<char, 4096> ignored{};
    for (std::size_t total = 0; total < kMostBytes;) {
      auto [failed, size] = co_await socket_.async_read_some(asio::buffer(ignored), kAsTuple);
      if (failed) co_return;
      total += size;
    }
  }

  // `closes`: the connection is unusable afterwards; otherwise only its reads end.
  void expire_after(milliseconds time, bool closes) {
    deadline_.expires_after(time);
    deadline_.async_wait([weak = weak_from_this(), closes](std::error_code error) {
      const auto self = weak.lock();
      // The timer may have been moved after this expiry was queued.
      if (error || !self || Clock::now() < self->deadline_.expiry()) return;
      self->timed_out_ = true;
      std::error_code ignored;
      if (closes) {
        self->socket_.close(ignored);
      } else {
        // Ends only the reads, so that the connection can still carry the 408.
        self->socket_.cancel(ignored);
      }
    });
  }

  std::shared_ptr<State> state_;
  Listener& listener_;
  Socket socket_;
  const std::string peer_;
  const std::optional<std::string> refusal_;
  std::unique_ptr<TlsAccepted> tls_;  // null: http
  asio::steady_timer deadline_;
  bool timed_out_ = false;
  bool is_reading_ = false;
  bool stays_open_ = false;  // after the current reply
  std::size_t replies_ = 0;
  std::optional<HttpRequestParser> parser_;  // of the newest request
  std::shared_ptr<HttpLineStream> lines_;
};

asio::awaitable<void> HttpServer::State::accept_loop(Listener& listener) {
  const auto accept = [](auto& acceptor) -> asio::awaitable<std::optional<Socket>> {
    auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
    if (error == asio::error::operation_aborted) co_return std::nullopt;
    if (error) {
      // Without a pause accept() would return the same error at once and use up the processor.
      asio::steady_timer pause(acceptor.get_executor(), kAcceptPause);
      co_await pause.async_wait(kAsTuple);
      co_return Socket(acceptor.get_executor());
    }
    co_return Socket(std::move(socket));
  };
  while (!stopping) {
    std::optional<Socket> socket;
    if (auto* const local =
            std::get_if<asio::local::stream_protocol::acceptor>(&listener.acceptor)) {
      socket = co_await accept(*local);
    } else {
      socket = co_await accept(std::get<asio::ip::tcp::acceptor>(listener.acceptor));
    }
    if (!socket || stopping) co_return;
    // An accept() that failed; the pause is over.
    if (!socket->is_open()) continue;
    // Asio's accept does not set the flag, and a child process must not hold the connection.
    fcntl(socket->native_handle(), F_SETFD, FD_CLOEXEC);
    const std::size_t open = listener.connections;
    const std::size_t most = most_connections(listener);
    // The second limit bounds the connections that only receive a refusal.
    if (open >= 2 * most) continue;  // closed at once, without a sentence
    const bool is_one_too_many = open >= most && !make_room(listener);
    std::make_shared<Connection>(shared_from_this(), listener, std::move(*socket))
        ->start(is_one_too_many);
  }
}

std::size_t HttpServer::State::most_connections(const Listener& listener) const {
  return listener.guard ? options.max_browser_connections : options.max_connections;
}

// Idle connections cannot keep others out: the one that has waited for longest is closed. A browser
// opens another one when it needs it.
bool HttpServer::State::make_room(const Listener& listener) {
  if (!listener.guard) return false;
  for (Connection* const connection : connections) {
    if (connection->is_of(listener) && connection->is_reading()) {
      connection->close();
      return true;
    }
  }
  return false;
}

void HttpServer::State::listen(std::unique_ptr<Listener> listener) {
  std::visit([](auto& acceptor) { fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC); },
             listener->acceptor);
  listeners.push_back(std::move(*listener));
  asio::co_spawn(
      context,
      [self = shared_from_this(), &added = listeners.back()] { return self->accept_loop(added); },
      asio::detached);
}

void HttpServer::State::audit(const HttpServerRequest& request, int status) {
  if (!options.audit || !changes_something(request)) return;
  // Refused attempts may come at any rate, so they share one line per interval; successful changes
  // are always recorded.
  const bool is_refused = status == http_status::kUnauthorized ||
                          status == http_status::kForbidden || status == http_status::kMisdirected;
  if (!is_refused) {
    options.audit(request, status, 0);
    return;
  }
  const auto now = Clock::now();
  if (audited_refusal && now - *audited_refusal < options.audit_interval) {
    ++unaudited;
    return;
  }
  audited_refusal = now;
  options.audit(request, status, std::exchange(unaudited, 0));
}

void HttpServer::State::forget(const Connection* connection) {
  std::erase(connections, connection);
  // The pending timer would keep the io_context running after the last connection.
  if (stopping && connections.empty()) grace.cancel();
}

void HttpServer::State::stop() {
  if (std::exchange(stopping, true)) return;
  for (Listener& listener : listeners) {
    std::error_code ignored;
    std::visit([&ignored](auto& acceptor) { acceptor.close(ignored); }, listener.acceptor);
  }
  // No connection is left to wait for, so the timer is not started.
  if (connections.empty()) return;
  for (Connection* const connection : connections) connection->wind_down();  // none is removed
  grace.expires_after(options.stop_grace);
  grace.async_wait([self = shared_from_this()](std::error_code error) {
    if (error) return;  // all have ended on their own
    for (Connection* const connection : self->connections) connection->close();
  });
}

HttpServer::HttpServer(asio::io_context& context, Handler handler, const HttpServerOptions& options)
    : state_(std::make_shared<State>(context, std::move(handler), options)) {}

HttpServer::~HttpServer() {
  try {
    stop();
  } catch (const std::exception&) {
    // No memory for the grace period: the connections end with the context.
  }
}

void HttpServer::listen(asio::local::stream_protocol::acceptor acceptor) {
  state_->listen(std::make_unique<Listener>(Listener{.acceptor = std::move(acceptor)}));
}

void HttpServer::listen(asio::ip::tcp::acceptor acceptor, HttpAccess access) {
  state_->listen(std::make_unique<Listener>(Listener{.acceptor = std::move(acceptor),
                                                     .tokens = std::move(access.tokens),
                                                     .identity = std::move(access.identity)}));
}

void HttpServer::listen(asio::ip::tcp::acceptor acceptor, const std::string& token) {
  state_->listen(
      std::make_unique<Listener>(Listener{.acceptor = std::move(acceptor), .token = token}));
}

void HttpServer::listen(asio::ip::tcp::acceptor acceptor, std::shared_ptr<BrowserGuard> guard,
                        std::shared_ptr<TlsIdentity> identity) {
  state_->listen(std::make_unique<Listener>(Listener{.acceptor = std::move(acceptor),
                                                     .guard = std::move(guard),
                                                     .identity = std::move(identity)}));
}

void HttpServer::stop() { state_->stop(); }

}  // namespace disttf::net
