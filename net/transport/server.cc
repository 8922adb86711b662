#include "net/transport/server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/steady_timer.hpp>
#include <cassert>
#include <cerrno>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "net/transport/as_tuple.h"
#include "net/transport/credentials.h"
#include "net/transport/descriptor_limit.h"
#include "net/transport/same_host.h"
#include "net/transport/spawn.h"
#include "net/wire/bare_message.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;
constexpr std::chrono::seconds kLogInterval{1};

// Counts one open socket of a listener for as long as it exists.
class Slot {
 public:
  explicit Slot(std::function<void()> released) : released_(std::move(released)) {}
  ~Slot() { released_(); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  std::function<void()> released_;
};

[[nodiscard]] std::string wrong_target(const ServerOptions& self, const Hello& hello,
                                       bool same_lists) {
  const std::string wanted = to_string(hello.to);
  return "this is " + self.self_text + ", not " + wanted + ": " +
         (same_lists ? "the address of " + wanted + " leads to the wrong task"
                     : "--" + std::string(job_name(hello.to.job)) +
                           (hello.to.job == Job::kPs || hello.to.job == Job::kWorker
                                ? "_hosts differs between tasks"
                                : "_host differs between tasks"));
}

// Why a HELLO does not fit the cluster; nullopt when it does.
[[nodiscard]] std::optional<std::string> misfit(const ServerOptions& self, const Hello& hello) {
  const ClusterHash ours = hash_of(self.cluster);
  const bool same_lists = hello.cluster == ours || hello.cluster == sparse_hash_of(self.cluster);
  if (hello.to != self.self) return wrong_target(self, hello, same_lists);
  if (!same_lists) {
    return "your address lists (cluster " + short_hex(hello.cluster) + ") differ from those of " +
           self.self_text + " (cluster " + short_hex(ours) +
           "): every task needs the same ps, worker and chief addresses in the same order" +
           (self.cluster.open ? ", or --max_workers as here" : "");
  }
  // An evaluator need not be listed.
  const std::size_t listed = self.cluster.tasks_of(hello.from.job).size();
  const std::size_t count = hello.from.job == Job::kEvaluator ? 1 : listed;
  if (hello.from.index >= count) {
    return "there is no " + to_string(hello.from) + " in the cluster of " + self.self_text +
           ", which has " + std::to_string(count) + " of job " +
           std::string(job_name(hello.from.job)) +
           (hello.from.job == Job::kWorker ? "; --max_workers, on every task, lets more join" : "");
  }
  return std::nullopt;
}

// The text of a socket error, with the operation in front.
[[nodiscard]] std::system_error listen_error(std::error_code error, const std::string& what) {
  return {error, "cannot listen on " + what};
}

[[nodiscard]] std::error_code open_and_listen(tcp::acceptor& acceptor,
                                              const tcp::endpoint& endpoint) {
  std::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (error) return error;
  // A child process must not hold the port; `launch` passes a socket on by clearing this flag.
  ::fcntl(acceptor.native_handle(), F_SETFD, FD_CLOEXEC);
  // The port of a run that has just ended may be taken again at once.
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(false), error);
  }
  if (is_loopback(endpoint.address())) send_unpaced(acceptor.native_handle());
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

}  // namespace

tcp::acceptor listen_on(asio::io_context& context, std::uint16_t port, ListenScope scope) {
  const std::string what = "port " + std::to_string(port);
  tcp::acceptor acceptor(context);
  if (scope == ListenScope::kLoopback) {
    const auto error = open_and_listen(acceptor, {asio::ip::address_v4::loopback(), port});
    if (error) throw listen_error(error, "127.0.0.1 " + what);
    return acceptor;
  }
  auto error = open_and_listen(acceptor, {tcp::v6(), port});
  if (error && error != asio::error::address_in_use && error != asio::error::access_denied) {
    // No IPv6 on this machine, or none that takes IPv4 along.
    acceptor = tcp::acceptor(context);
    error = open_and_listen(acceptor, {tcp::v4(), port});
  }
  if (error) throw listen_error(error, what);
  return acceptor;
}

tcp::acceptor listen_at(asio::io_context& context, const std::string& host, std::uint16_t port) {
  if (host == kEveryAddress) return listen_on(context, port);
  tcp::acceptor acceptor(context);
  const auto error = open_and_listen(acceptor, {asio::ip::make_address(host), port});
  if (error) throw listen_error(error, host + " port " + std::to_string(port));
  return acceptor;
}

tcp::acceptor listen_as(asio::io_context& context, const Address& listed) {
  if (!is_loopback_host(listed.host)) return listen_on(context, listed.port);
  return listen_at(context, listed.host == "localhost" ? "127.0.0.1" : listed.host, listed.port);
}

tcp::acceptor adopt_listening(asio::io_context& context, int fd) {
  const std::string what = "inherited descriptor " + std::to_string(fd);
  int listening = 0;
  socklen_t size = sizeof listening;
  if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    const std::error_code error(errno, std::system_category());
    ::close(fd);
    throw listen_error(listening == 0 && !error ? asio::error::invalid_argument : error, what);
  }
  sockaddr_storage address{};
  size = sizeof address;
  std::error_code error;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
    ::close(fd);
    throw listen_error(std::make_error_code(std::errc::address_family_not_supported), what);
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  tcp::acceptor acceptor(context);
  acceptor.assign(address.ss_family == AF_INET6 ? tcp::v6() : tcp::v4(), fd, error);
  if (error) {
    ::close(fd);
    throw listen_error(error, what);
  }
  if (is_loopback(acceptor.local_endpoint(error).address())) send_unpaced(fd);
  return acceptor;
}

class Listener::Impl : public std::enable_shared_from_this<Listener::Impl> {
 public:
  Impl(asio::io_context& context, tcp::acceptor acceptor, ServerOptions options, ServerHooks hooks)
      : acceptor_(std::move(acceptor)),
        pause_timer_(context),
        options_(std::move(options)),
        hooks_(std::move(hooks)) {}

  void start();
  void stop() noexcept;
  void forget_hooks() noexcept { hooks_ = {}; }

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::uint64_t strangers() const noexcept { return strangers_; }
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }
  [[nodiscard]] std::size_t connections() const noexcept { return open_; }

 private:
  using ConnectionPtr = std::shared_ptr<ServerConnection>;
  using Id = std::uint64_t;
  using OfTask = std::pair<Job, std::size_t>;

  asio::awaitable<void> accept_loop();
  asio::awaitable<void> pause_accepting(std::error_code error);
  void admit(tcp::socket socket);
  void drop_oldest();
  asio::awaitable<void> handshake(ConnectionPtr connection, Id id);
  void answer(const ConnectionPtr& connection, Id id, const FrameHeader& header,
              const Hello& hello);
  void serve(const ConnectionPtr& connection, Id id);
  [[nodiscard]] bool make_room_for(const Hello& hello);
  void stranger(const ServerConnection& connection, std::error_code error);
  void refuse(const ConnectionPtr& connection, const Refusal& refusal, std::uint64_t request_id);
  void report(const std::string& sentence);
  [[nodiscard]] static OfTask of_task(const Hello& hello) {
    return {hello.from.job, hello.from.job == Job::kEvaluator ? 0 : hello.from.index};
  }
  [[nodiscard]] auto to_owner() {
    return [self = shared_from_this()](const std::exception_ptr& failure) {
      if (self->hooks_.on_error) self->hooks_.on_error(failure);
    };
  }

  tcp::acceptor acceptor_;
  asio::steady_timer pause_timer_;
  const ServerOptions options_;
  ServerHooks hooks_;
  bool stopped_ = false;
  // Sockets that have not said a valid HELLO, or were refused: the oldest first. Weak, since the
  // coroutines own them; each takes itself off when it is closed or handed on.
  std::map<Id, std::weak_ptr<ServerConnection>> pending_;
  // Those that were handed on, of each task; of all evaluators as if they were the first.
  std::map<OfTask, std::map<Id, std::weak_ptr<ServerConnection>>> served_;
  Id next_id_ = 0;
  std::size_t open_ = 0;
  std::uint64_t strangers_ = 0;
  std::uint64_t refusals_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_report_;
  std::uint64_t unreported_ = 0;
};

void Listener::Impl::start() {
  spawn(
      acceptor_.get_executor(), [self = shared_from_this()] { return self->accept_loop(); },
      to_owner());
}

void Listener::Impl::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
  while (!pending_.empty()) drop_oldest();
}

std::uint16_t Listener::Impl::port() const noexcept {
  std::error_code error;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

asio::awaitable<void> Listener::Impl::accept_loop() {
  while (!stopped_) {
    auto [error, socket] = co_await acceptor_.async_accept(kAsTuple);
    if (stopped_) co_return;
    if (error) {
      co_await pause_accepting(error);
    } else {
      admit(std::move(socket));
    }
  }
}

// Out of descriptors or memory: those who have proved nothing make room, and the others wait in
// the kernel's queue. Never a loop without a pause: the error comes back at once.
asio::awaitable<void> Listener::Impl::pause_accepting(std::error_code error) {
  report("cannot accept connections: " + error.message() + descriptor_hint(error));
  for (std::size_t left = (pending_.size() + 1) / 2; left > 0; --left) drop_oldest();
  pause_timer_.expires_after(options_.accept_pause);
  co_await pause_timer_.async_wait(kAsTuple);
}

void Listener::Impl::admit(tcp::socket socket) {
  while (pending_.size() >= options_.max_pending ||
         (open_ >= options_.max_connections && !pending_.empty())) {
    ++strangers_;
    report("too many handshakes at once: dropped the oldest");
    drop_oldest();
  }
  if (open_ >= options_.max_connections) {
    ++strangers_;
    report("dropped a connection: " + std::to_string(open_) + " are open");
    return;
  }
  const Id id = next_id_++;
  ++open_;
  const auto released = [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (!self) return;
    --self->open_;
    self->pending_.erase(id);
  };
  const auto connection = std::make_shared<ServerConnection>(
      std::move(socket), options_.limits, std::make_shared<const Slot>(released));
  pending_.emplace(id, connection);
  spawn(
      acceptor_.get_executor(),
      [self = shared_from_this(), connection, id] { return self->handshake(connection, id); },
      to_owner());
}

// REQUIRES: pending_ is not empty.
void Listener::Impl::drop_oldest() {
  assert(!pending_.empty());
  const auto oldest = pending_.begin();
  const ConnectionPtr connection = oldest->second.lock();
  pending_.erase(oldest);
  if (connection) connection->close();
}

asio::awaitable<void> Listener::Impl::handshake(ConnectionPtr connection, Id id) {
  connection->begin_handshake(options_.handshake_timeout);
  std::error_code error;
  if (options_.credentials != nullptr) {
    error = co_await connection->accept_tls(*options_.credentials);
  }
  const bool is_plain = error == TlsError::kNotTls;
  if (error && !is_plain) {
    stranger(*connection, error);
    co_return;
  }
  FrameHeader header;
  error = co_await connection->read_first_header(header);
  if (error == TlsError::kNotSpoken || (is_plain && !error)) {
    refuse(connection,
           {kExitMisconfigured,
            is_plain ? options_.credentials->wanted_by(options_.self_text)
                     : options_.self_text + " has no secret or certificate to speak TLS by"},
           0);
    co_return;
  }
  if (error == WireError::kBadVersion) {
    refuse(connection,
           {kExitMisconfigured, options_.self_text + " speaks wire version " +
                                    std::to_string(kWireVersion) +
                                    " and no other: run the same release of disttf everywhere"},
           0);
    co_return;
  }
  std::array<std::byte, kHelloBytes> body{};
  const bool is_hello = !HelloFrame{}.from_header(header) && header.body_size == body.size();
  if (!error && is_hello) error = co_await connection->read_body(body, {});
  if (error) {
    stranger(*connection, error);
    co_return;
  }
  Hello hello;
  if (!is_hello || decode(body, hello)) {
    refuse(connection,
           {kExitMisconfigured,
            options_.self_text + " expected a HELLO as the first frame, and got something else"},
           header.request_id);
    co_return;
  }
  if (stopped_) co_return;
  if (const auto why = connection->tls_misfit(hello)) {
    refuse(connection, {kExitMisconfigured, options_.self_text + " " + *why}, header.request_id);
    co_return;
  }
  connection->set_hello(hello);
  answer(connection, id, header, hello);
}

void Listener::Impl::answer(const ConnectionPtr& connection, Id id, const FrameHeader& header,
                            const Hello& hello) {
  if (options_.vacant == hello.cluster) {
    connection->close();
    return;
  }
  if (options_.busy == hello.cluster) {
    refuse(connection, {kExitRestartMe, options_.self_text + " is at work for another driver"},
           header.request_id);
    return;
  }
  if (const auto why = misfit(options_, hello)) {
    refuse(connection, {kExitMisconfigured, *why}, header.request_id);
    return;
  }
  const std::variant<Welcome, Refusal> reply = hooks_.make_welcome(hello);
  if (const auto* refusal = std::get_if<Refusal>(&reply)) {
    refuse(connection, *refusal, header.request_id);
    return;
  }
  const bool stays = hello.purpose != ChannelPurpose::kProbe;
  if (stays && !make_room_for(hello)) {
    report("closed " + connection->peer_text() + ": of evaluators there are " +
           std::to_string(options_.max_of_task) + " connections already");
    connection->close();
    return;
  }
  connection->send(WelcomeFrame{header.request_id}.to_header(), encode(std::get<Welcome>(reply)));
  if (!stays) {
    connection->finish();
    return;
  }
  pending_.erase(id);
  served_[of_task(hello)].emplace(id, connection);
  serve(connection, id);
}

bool Listener::Impl::make_room_for(const Hello& hello) {
  const auto found = served_.find(of_task(hello));
  if (found == served_.end() || found->second.size() < options_.max_of_task) return true;
  if (hello.from.job == Job::kEvaluator) return false;
  if (const ConnectionPtr oldest = found->second.begin()->second.lock()) oldest->close();
  found->second.erase(found->second.begin());
  return true;
}

void Listener::Impl::serve(const ConnectionPtr& connection, Id id) {
  asio::co_spawn(
      acceptor_.get_executor(),
      // The callable, kept by co_spawn, outlives the coroutine that it makes.
      [on_connection = hooks_.on_connection, connection] { return on_connection(connection); },
      [self = shared_from_this(), connection, id](const std::exception_ptr& failure) {
        const auto found = self->served_.find(of_task(connection->hello()));
        if (found != self->served_.end()) {
          found->second.erase(id);
          if (found->second.empty()) self->served_.erase(found);
        }
        connection->finish();
        if (failure) self->to_owner()(failure);
      });
}

void Listener::Impl::stranger(const ServerConnection& connection, std::error_code error) {
  // Dropped by ourselves: counted where that was decided.
  if (error == std::errc::operation_canceled) return;
  ++strangers_;
  // Looking whether the port is open, and no more, is what health checks do every few seconds.
  if (error == asio::error::eof || error == asio::error::connection_reset) return;
  if (const auto why = connection.tls_detail(error, options_.self_text); !why.empty()) {
    report("closed " + connection.endpoint_text() + ": " + why);
    return;
  }
  report("closed " + connection.endpoint_text() +
         " before a valid HELLO: " + (error == std::errc::timed_out ? "silence" : error.message()));
}

void Listener::Impl::refuse(const ConnectionPtr& connection, const Refusal& refusal,
                            std::uint64_t request_id) {
  ++refusals_;
  report("refused " + connection->peer_text() + ": " + refusal.sentence);
  connection->refuse(refusal, request_id);
}

void Listener::Impl::report(const std::string& sentence) {
  if (!hooks_.log) return;
  const auto now = std::chrono::steady_clock::now();
  if (last_report_ && now - *last_report_ < kLogInterval) {
    ++unreported_;
    return;
  }
  last_report_ = now;
  const std::uint64_t others = std::exchange(unreported_, 0);
  hooks_.log(others == 0 ? sentence
                         : sentence + " (" + std::to_string(others) + " more not shown)");
}

Listener::Listener(asio::io_context& context, tcp::acceptor acceptor, ServerOptions options,
                   ServerHooks hooks)
    : impl_(std::make_shared<Impl>(context, std::move(acceptor), std::move(options),
                                   std::move(hooks))) {
  impl_->start();
}

Listener::~Listener() {
  impl_->stop();
  impl_->forget_hooks();
}

std::uint16_t Listener::port() const noexcept { return impl_->port(); }
std::uint64_t Listener::strangers() const noexcept { return impl_->strangers(); }
std::uint64_t Listener::refusals() const noexcept { return impl_->refusals(); }
std::size_t Listener::connections() const noexcept { return impl_->connections(); }
void Listener::stop() noexcept { impl_->stop(); }

}  // namespace disttf::net
