#include "net/tcp/listener.h"

#include <sys/socket.h>

#include <array>
#include <asio/co_spawn.hpp>
#include <asio/error.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cassert>
#include <cerrno>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

#include "net/tcp/lookup.h"
#include "net/tcp/pre_handshake_queue.h"
#include "net/tcp/spawn.h"
#include "net/tls/credentials.h"
#include "net/waiting/as_tuple.h"
#include "net/waiting/descriptor.h"
#include "net/wire/bare_message.h"

namespace disttf::net {
namespace {

using asio::ip::tcp;
// Limits the log lines per listener, because unauthenticated peers can connect at any rate.
constexpr std::chrono::seconds kLogInterval{1};

// Counts one open socket of a listener as long as it exists.
class Slot {
 public:
  explicit Slot(std::function<void()> released) : released_(std::move(released)) {}
  ~Slot() { released_(); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  std::function<void()> released_;
};

[[nodiscard]] std::string wrong_target(const ListenerOptions& self, const Hello& hello,
                                       bool same_lists) {
  const std::string wanted = to_string(hello.to);
  return "this is " + self.self_text + ", not " + wanted + ": " +
         (same_lists ? "the address of " + wanted + " leads to the wrong task"
                     : "--" + std::string(job_name(hello.to.job)) +
                           (hello.to.job == Job::kPs || hello.to.job == Job::kWorker
                                ? "_hosts differs between tasks"
                                : "_host differs between tasks"));
}

// Returns why a HELLO does not fit the cluster; nullopt if it does.
[[nodiscard]] std::optional<std::string> misfit(const ListenerOptions& self, const Hello& hello) {
  const ClusterHash ours = hash_of(self.cluster);
  // A task with a sparse list hashes its workers as unknown, so it fits every cluster with the same
  // ps and chief.
  const bool same_lists = hello.cluster == ours || hello.cluster == sparse_hash_of(self.cluster);
  if (hello.to != self.self) return wrong_target(self, hello, same_lists);
  // A wrong list explains a wrong index too, so its message comes first.
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

}  // namespace

class Listener::Impl : public std::enable_shared_from_this<Listener::Impl> {
 public:
  Impl(asio::io_context& context, tcp::acceptor acceptor, ListenerOptions options,
       ListenerHooks hooks)
      : acceptor_(std::move(acceptor)),
        protocol_(acceptor_.local_endpoint().protocol()),
        pause_timer_(context),
        pre_handshake_timer_(context),
        options_(std::move(options)),
        hooks_(std::move(hooks)),
        pre_handshake_queue_(options_.credentials != nullptr),
        pre_handshake_fd_(context, pre_handshake_queue_.watched()) {
    // accept4() is called directly, so the listening socket must not block when a connection has
    // gone before it is accepted.
    acceptor_.native_non_blocking(true);
  }

  void start();
  void stop() noexcept;
  void forget_hooks() noexcept { hooks_ = {}; }

  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::uint64_t unauthenticated_peers() const noexcept {
    return unauthenticated_peers_ + pre_handshake_queue_.ended();
  }
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }
  [[nodiscard]] std::size_t connections() const noexcept { return open(); }

 private:
  using ConnectionPtr = std::shared_ptr<ServerConnection>;
  using Id = std::uint64_t;
  using OfTask = std::pair<Job, std::size_t>;

  asio::awaitable<void> accept_loop();
  asio::awaitable<void> pause_accepting(std::error_code error);
  [[nodiscard]] std::error_code accept_some();
  [[nodiscard]] bool make_room();
  asio::awaitable<void> watch_pre_handshake_queue();
  void wait_for_pre_handshake_timeouts();
  void admit(PreHandshakeQueue::Arrival arrival);
  void drop_oldest();
  asio::awaitable<void> handshake(ConnectionPtr connection, Id id);
  void answer(const ConnectionPtr& connection, Id id, const FrameHeader& header,
              const Hello& hello);
  void serve(const ConnectionPtr& connection, Id id);
  [[nodiscard]] bool make_room_for(const Hello& hello);
  void report_unauthenticated(const ServerConnection& connection, std::error_code error);
  void refuse(const ConnectionPtr& connection, const Refusal& refusal, std::uint64_t request_id);
  // Sockets that are unauthenticated or refused.
  [[nodiscard]] std::size_t unproven() const noexcept {
    return pending_.size() + pre_handshake_queue_.size();
  }
  [[nodiscard]] std::size_t open() const noexcept { return open_ + pre_handshake_queue_.size(); }
  // Whether report() would log the next sentence.
  [[nodiscard]] bool may_report() noexcept;
  void report(const std::string& sentence);
  [[nodiscard]] static OfTask of_task(const Hello& hello) {
    return {hello.from.job, hello.from.job == Job::kEvaluator ? 0 : hello.from.index};
  }
  // Errors of coroutines are reported to the owner, which decides whether the process can continue.
  // The callable keeps this object alive until then.
  [[nodiscard]] auto to_owner() {
    return [self = shared_from_this()](const std::exception_ptr& failure) {
      if (self->hooks_.on_error) self->hooks_.on_error(failure);
    };
  }

  tcp::acceptor acceptor_;
  const tcp protocol_;
  asio::steady_timer pause_timer_;
  asio::steady_timer pre_handshake_timer_;  // the first deadline in the pre-handshake queue
  bool waits_for_pre_handshake_timeouts_ = false;
  const ListenerOptions options_;
  ListenerHooks hooks_;
  bool stopped_ = false;
  PreHandshakeQueue pre_handshake_queue_;
  asio::posix::stream_descriptor pre_handshake_fd_;
  // Sockets that have not sent a valid HELLO, or were refused: oldest first. Weak pointers, because
  // the coroutines own them; each removes itself when it is closed or passed on.
  struct Pending {
    std::weak_ptr<ServerConnection> connection;
    PreHandshakeQueue::Time until;  // as in the pre-handshake queue: orders both
  };
  std::map<Id, Pending> pending_;
  // Connections that were passed on, by task; those of all evaluators are stored as the first
  // one's.
  std::map<OfTask, std::map<Id, std::weak_ptr<ServerConnection>>> served_;
  Id next_id_ = 0;
  std::size_t open_ = 0;  // without those in the pre-handshake queue
  std::uint64_t unauthenticated_peers_ = 0;
  std::uint64_t refusals_ = 0;
  std::optional<std::chrono::steady_clock::time_point> last_report_;
  std::uint64_t unreported_ = 0;
};

void Listener::Impl::start() {
  spawn(
      acceptor_.get_executor(), [self = shared_from_this()] { return self->accept_loop(); },
      to_owner());
  spawn(
      acceptor_.get_executor(),
      [self = shared_from_this()] { return self->watch_pre_handshake_queue(); }, to_owner());
}

void Listener::Impl::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  std::error_code ignored;
  acceptor_.close(ignored);
  pause_timer_.cancel();
  pre_handshake_timer_.cancel();
  pre_handshake_fd_.close(ignored);
  // Connections that were passed on belong to their owners and stay open.
  while (unproven() != 0) drop_oldest();
}

std::uint16_t Listener::Impl::port() const noexcept {
  std::error_code error;
  const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
  return error ? std::uint16_t{0} : endpoint.port();
}

asio::awaitable<void> Listener::Impl::accept_loop() {
  while (!stopped_) {
    auto [error] = co_await acceptor_.async_wait(tcp::acceptor::wait_read, kAsTuple);
    if (stopped_) co_return;
    if (!error) error = accept_some();
    if (error) co_await pause_accepting(error);
  }
}

// Accepts a few connections only, so that other coroutines get a turn. Some errors concern a single
// connection that has gone; they are skipped.
std::error_code Listener::Impl::accept_some() {
  constexpr int kMost = 16;
  for (int count = 0; count < kMost && !stopped_; ++count) {
    Descriptor socket(
        ::accept4(acceptor_.native_handle(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == EAGAIN) return {};
      if (errno == EINTR || errno == ECONNABORTED || errno == EPROTO) continue;
      return {errno, std::system_category()};
    }
    // The socket is accepted before the check, because leaving it in the kernel's queue would make
    // the listener readable forever.
    if (!make_room()) continue;
    const auto until = std::chrono::steady_clock::now() + options_.handshake_timeout;
    // Bytes that are there already start the handshake at once. Silent sockets wait in the
    // pre-handshake queue, which costs less than a connection object and a coroutine.
    if (auto ready = pre_handshake_queue_.add(std::move(socket), until)) {
      admit({std::move(*ready), until});
    } else if (!waits_for_pre_handshake_timeouts_ && pre_handshake_queue_.size() != 0) {
      wait_for_pre_handshake_timeouts();
    }
  }
  return {};
}

asio::awaitable<void> Listener::Impl::watch_pre_handshake_queue() {
  while (!stopped_) {
    auto [error] =
        co_await pre_handshake_fd_.async_wait(asio::posix::stream_descriptor::wait_read, kAsTuple);
    if (stopped_ || error) co_return;
    for (PreHandshakeQueue::Arrival& each : pre_handshake_queue_.ready()) {
      if (!stopped_) admit(std::move(each));
    }
  }
}

// Arms the timer for the first deadline. REQUIRES: the pre-handshake queue is not empty.
void Listener::Impl::wait_for_pre_handshake_timeouts() {
  waits_for_pre_handshake_timeouts_ = true;
  pre_handshake_timer_.expires_at(pre_handshake_queue_.first_until());
  pre_handshake_timer_.async_wait([self = shared_from_this()](std::error_code error) {
    self->waits_for_pre_handshake_timeouts_ = false;
    if (error || self->stopped_) return;
    const auto now = std::chrono::steady_clock::now();
    while (self->pre_handshake_queue_.size() != 0 &&
           self->pre_handshake_queue_.first_until() <= now) {
      const Descriptor silent = self->pre_handshake_queue_.take_oldest();
      ++self->unauthenticated_peers_;
      if (self->may_report()) {
        self->report("closed " + peer_endpoint_text(silent.number()) +
                     " before a valid HELLO: timed out");
      }
    }
    if (self->pre_handshake_queue_.size() != 0) self->wait_for_pre_handshake_timeouts();
  });
}

// Out of descriptors or memory: half of the unauthenticated sockets make room, and new ones wait in
// the kernel's queue. The pause is needed because accept() would return the error again at once.
asio::awaitable<void> Listener::Impl::pause_accepting(std::error_code error) {
  report("cannot accept connections: " + error.message() + descriptor_hint(error));
  for (std::size_t left = (unproven() + 1) / 2; left > 0; --left) drop_oldest();
  pause_timer_.expires_after(options_.accept_pause);
  co_await pause_timer_.async_wait(kAsTuple);
}

// Makes room for one more connection. False: there is none.
bool Listener::Impl::make_room() {
  // Only unauthenticated sockets make room. A connection that serves a task is never closed for a
  // newcomer.
  while (unproven() >= options_.max_pending ||
         (open() >= options_.max_connections && unproven() != 0)) {
    ++unauthenticated_peers_;
    report("too many handshakes at once: dropped the oldest");
    drop_oldest();
  }
  if (open() < options_.max_connections) return true;
  ++unauthenticated_peers_;
  report("dropped a connection: " + std::to_string(open()) + " are open");
  return false;
}

void Listener::Impl::admit(PreHandshakeQueue::Arrival arrival) {
  tcp::socket socket(acceptor_.get_executor());
  std::error_code error;
  socket.assign(protocol_, arrival.socket.number(), error);
  if (error) {  // out of memory, or of epoll watches
    ++unauthenticated_peers_;
    report("dropped a connection: " + error.message());
    return;
  }
  // Only now does the asio socket own the descriptor.
  static_cast<void>(arrival.socket.release());
  const Id id = next_id_++;
  ++open_;
  // A weak pointer: connections may outlive the listener, and must not keep it alive.
  const auto released = [weak = weak_from_this(), id] {
    const auto self = weak.lock();
    if (!self) return;
    --self->open_;
    self->pending_.erase(id);
  };
  const auto connection = std::make_shared<ServerConnection>(
      std::move(socket), options_.limits, std::make_shared<const Slot>(released));
  pending_.emplace(id, Pending{.connection = connection, .until = arrival.until});
  spawn(
      acceptor_.get_executor(),
      [self = shared_from_this(), connection, id] { return self->handshake(connection, id); },
      to_owner());
}

// Drops the oldest of both kinds. If the pre-handshake queue always lost first, a few handshakes
// that never finish would keep all others out. REQUIRES: unproven() > 0.
void Listener::Impl::drop_oldest() {
  assert(unproven() != 0);
  const auto oldest = pending_.begin();
  if (oldest == pending_.end() || (pre_handshake_queue_.size() != 0 &&
                                   pre_handshake_queue_.first_until() <= oldest->second.until)) {
    static_cast<void>(pre_handshake_queue_.take_oldest());
    return;
  }
  const ConnectionPtr connection = oldest->second.connection.lock();
  pending_.erase(oldest);
  if (connection) connection->close();
}

asio::awaitable<void> Listener::Impl::handshake(ConnectionPtr connection, Id id) {
  // The same time again: the timeout of the pre-handshake queue covered only the first bytes.
  connection->begin_handshake(options_.handshake_timeout);
  std::error_code error;
  // Without credentials a TLS hello fails the frame check below and gets a refusal that names the
  // cause.
  if (options_.credentials != nullptr) {
    error = co_await connection->accept_tls(*options_.credentials);
  }
  const bool is_plain = error == TlsError::kNotTls;
  if (error && !is_plain) {
    report_unauthenticated(*connection, error);
    co_return;
  }
  FrameHeader header;
  // Version and TLS mismatches are answered, so that both logs name the cause.
  error = co_await connection->read_first_header(header);
  if (error == TlsError::kNotSpoken || (is_plain && !error)) {
    refuse(connection,
           {kExitMisconfigured, is_plain
                                    ? options_.credentials->wanted_by(options_.self_text)
                                    : options_.self_text + " has no secret or certificate for TLS"},
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
  // The exact size is required before the body is read, so an unauthenticated peer cannot make this
  // task allocate or wait for more.
  std::array<std::byte, kBodyBytes<Hello>> body{};
  const bool is_hello = !HelloFrame{}.from_header(header) && header.body_size == body.size();
  if (!error && is_hello) error = co_await connection->read_body(body, {});
  if (error) {
    report_unauthenticated(*connection, error);
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
  // Stopped during the reads: the connection closes with the coroutine.
  if (stopped_) co_return;
  // The identity in the certificate must match the HELLO: otherwise a task with a valid certificate
  // could pretend to be another one.
  if (const auto why = connection->tls_misfit(hello)) {
    refuse(connection, {kExitMisconfigured, options_.self_text + " " + *why}, header.request_id);
    co_return;
  }
  connection->set_hello(hello);
  answer(connection, id, header, hello);
}

void Listener::Impl::answer(const ConnectionPtr& connection, Id id, const FrameHeader& header,
                            const Hello& hello) {
  // A server's task has not started yet: no answer makes the peer retry.
  if (options_.vacant == hello.cluster) {
    connection->close();
    return;
  }
  if (options_.busy == hello.cluster) {
    refuse(connection, {kExitRestartMe, options_.self_text + " is busy with another driver"},
           header.request_id);
    return;
  }
  if (const auto why = misfit(options_, hello)) {
    refuse(connection, {kExitMisconfigured, *why}, header.request_id);
    return;
  }
  // The owner decides last, so its answer depends only on peers that fit the cluster.
  const std::variant<Welcome, Refusal> reply = hooks_.make_welcome(hello);
  if (const auto* refusal = std::get_if<Refusal>(&reply)) {
    refuse(connection, *refusal, header.request_id);
    return;
  }
  // A probe only tests whether the task is reachable. It gets no coroutine of the owner and does
  // not count against the task's connections.
  const bool stays = hello.purpose != ChannelPurpose::kProbe;
  if (stays && !make_room_for(hello)) {
    report("closed " + connection->peer_text() + ": evaluators have " +
           std::to_string(options_.max_of_task) + " connections already");
    connection->close();
    return;
  }
  connection->send(WelcomeFrame{header.request_id}.to_header(), encode(std::get<Welcome>(reply)));
  if (!stays) {
    connection->finish();
    return;
  }
  // From here on max_pending does not count the connection, and drop_oldest() cannot close it.
  pending_.erase(id);
  served_[of_task(hello)].emplace(id, connection);
  serve(connection, id);
}

bool Listener::Impl::make_room_for(const Hello& hello) {
  // A task that reconnects may leave dead connections behind, so its oldest one is closed.
  // Evaluators are not listed, so many could claim the job, and a new one must not close those in
  // use.
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
      // co_spawn keeps the callable, which must outlive its coroutine.
      [on_connection = hooks_.on_connection, connection] { return on_connection(connection); },
      [self = shared_from_this(), connection, id](const std::exception_ptr& failure) {
        const auto found = self->served_.find(of_task(connection->hello()));
        if (found != self->served_.end()) {
          found->second.erase(id);
          if (found->second.empty()) self->served_.erase(found);
        }
        // Not close(): frames that are still queued, such as a refusal, reach the peer.
        connection->finish();
        if (failure) self->to_owner()(failure);
      });
}

void Listener::Impl::report_unauthenticated(const ServerConnection& connection,
                                            std::error_code error) {
  // Dropped by this listener: counted where that was decided.
  if (error == std::errc::operation_canceled) return;
  ++unauthenticated_peers_;
  // Health checks open a connection and close it every few seconds: no log line.
  if (error == asio::error::eof || error == asio::error::connection_reset) return;
  if (const auto why = connection.tls_detail(error, options_.self_text); !why.empty()) {
    report("closed " + connection.endpoint_text() + ": " + why);
    return;
  }
  report("closed " + connection.endpoint_text() + " before a valid HELLO: " +
         (error == std::errc::timed_out ? "timed out" : error.message()));
}

void Listener::Impl::refuse(const ConnectionPtr& connection, const Refusal& refusal,
                            std::uint64_t request_id) {
  ++refusals_;
  report("refused " + connection->peer_text() + ": " + refusal.sentence);
  connection->refuse(refusal, request_id);
}

bool Listener::Impl::may_report() noexcept {
  if (!hooks_.log) return false;
  if (!last_report_ || std::chrono::steady_clock::now() - *last_report_ >= kLogInterval) {
    return true;
  }
  // The next sentence that is logged reports the number of suppressed ones.
  ++unreported_;
  return false;
}

void Listener::Impl::report(const std::string& sentence) {
  if (!may_report()) return;
  // The time is set only for a logged line, so a steady stream of suppressed ones does not delay
  // the next.
  last_report_ = std::chrono::steady_clock::now();
  const std::uint64_t others = std::exchange(unreported_, 0);
  hooks_.log(others == 0 ? sentence
                         : sentence + " (" + std::to_string(others) + " more not shown)");
}

Listener::Listener(asio::io_context& context, tcp::acceptor acceptor, ListenerOptions options,
                   ListenerHooks hooks)
    : impl_(std::make_shared<Impl>(context, std::move(acceptor), std::move(options),
                                   std::move(hooks))) {
  impl_->start();
}

Listener::~Listener() {
  // The hooks refer to the owner, which may be destroyed after this returns, while coroutines still
  // hold the implementation.
  impl_->stop();
  impl_->forget_hooks();
}

std::uint16_t Listener::port() const noexcept { return impl_->port(); }
std::uint64_t Listener::unauthenticated_peers() const noexcept {
  return impl_->unauthenticated_peers();
}
std::uint64_t Listener::refusals() const noexcept { return impl_->refusals(); }
std::size_t Listener::connections() const noexcept { return impl_->connections(); }
void Listener::stop() noexcept { impl_->stop(); }

}  // namespace disttf::net
