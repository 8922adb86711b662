#include "net/http/http_service_loop.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <exception>
#include <new>
#include <span>

#include "net/http/http_status.h"

namespace disttf::net {
namespace {

using std::chrono::milliseconds;

// Interval of the check for expired connections, and of accepting again after a lack of
// descriptors; neither needs precision.
constexpr milliseconds kSweepInterval{500};
// A refused client may still send, and must be able to read the sentence: closing at once would
// reset the connection.
constexpr milliseconds kServiceLinger{1000};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

void HttpService::Connection::answer(const HttpReply& reply) { loop->answer(*this, reply); }

void HttpService::Loop::run() {
  std::optional<milliseconds> patience = kSweepInterval;
  while (patience) patience = turn(std::min(*patience, kSweepInterval));
}

// A turn: events, postponed input, handing over, the handler's work, expired connections.
std::optional<milliseconds> HttpService::Loop::turn(milliseconds patience) {
  const int count = ::epoll_wait(epoll_.number(), events_.data(), static_cast<int>(events_.size()),
                                 static_cast<int>(patience.count()));
  if (count < 0 && errno != EINTR) {
    throw std::system_error(errno, std::system_category(), "epoll");
  }
  // One clock reading for the whole turn, which is short beside every time limit here.
  now_ = ServiceClock::now();
  for (const epoll_event& event :
       std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)))) {
    on_event(event);
  }
  // After the events, which may be the ends of connections that count.
  for (Listener& listener : shared_.listeners) {
    if (accepts() && std::exchange(listener.has_clients, false)) accept(listener);
  }
  // One share per connection and turn, so that a client with much input does not delay the others.
  for (Connection* const connection : std::exchange(resumed_, {})) {
    // Cleared first: it may be resumed again, into the list of the next turn.
    connection->is_resumed = false;
    attempt(*connection, [this, connection] { go_on_with(*connection); });
  }
  hand_over();
  const bool is_busy = handler_->work();
  if (now_ >= swept_ + kSweepInterval) sweep();
  // A relaxed load is enough: stop() wakes every loop after it has stored the stage, and a turn
  // that misses it is followed by another one.
  if (shared_.stage.load(std::memory_order_relaxed) == Shared::Stage::kStopping) {
    stop_once();
    // Before the check below, which counts connections.
    bury();
    if (is_done_stopping()) {
      connections_.clear();
      return std::nullopt;
    }
  }
  bury();
  return is_busy ? milliseconds(0) : time_to_next();
}

milliseconds HttpService::Loop::time_to_next() const {
  if (!resumed_.empty()) return milliseconds(0);
  if (stop_at_ != ServiceClock::time_point::max()) {
    return std::clamp(std::chrono::ceil<milliseconds>(stop_at_ - now_), milliseconds(0),
                      kSweepInterval);
  }
  return connections_.empty() && !accept_pauses_ ? milliseconds::max() : kSweepInterval;
}

void HttpService::Loop::on_event(const epoll_event& event) {
  if (event.data.ptr == &wake_) {
    std::uint64_t ignored = 0;
    static_cast<void>(!::read(wake_.number(), &ignored, sizeof(ignored)));
    take_inbox();
    return;
  }
  for (Listener& listener : shared_.listeners) {
    if (event.data.ptr == &listener) {
      listener.has_clients = true;
      return;
    }
  }
  Connection& connection = *static_cast<Connection*>(event.data.ptr);
  // The connection ended earlier in this turn; the kernel had already reported the event.
  if (connection.is_over) return;
  attempt(connection, [this, &connection] {
    // Output comes first: a client that does not read its replies gets no further requests served.
    if (!connection.out.empty()) {
      send(connection);
    } else if (connection.tls && !connection.is_lingering) {
      receive_tls(connection);
    } else if (!connection.is_asked && connection.rest.empty()) {  // the rest is handled first
      receive(connection);
    }
  });
}

void HttpService::Loop::go_on_with(Connection& connection) {
  const std::string bytes = std::exchange(connection.rest, {});
  if (!connection.is_over) take(connection, bytes);
  if (!connection.is_over && connection.lines && connection.out.empty()) {
    connection.deadline = now_ + options_.write_timeout;
    send(connection);
  }
  if (connection.tls) receive_tls(connection);
}

void HttpService::Loop::accept(Listener& listener) {
  // The set is level-triggered: clients that still wait are reported in the next turn. With a small
  // limit clients that have gone must not count against those that come after them.
  const int most_at_once = listener.options.use == HttpUse::kService ? 64 : 1;
  const std::size_t most = listener.options.max_connections;
  for (int i = 0; i < most_at_once && listener.socket.is_open(); ++i) {
    asio::ip::tcp::endpoint peer;
    auto size = static_cast<socklen_t>(peer.capacity());
    Descriptor socket(
        ::accept4(listener.socket.number(), peer.data(), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) {
      if (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED) return;
      // No descriptors or no memory: retried by the next sweep, so that the thread does not spin.
      watch(listener.socket.number(), 0, &listener, EPOLL_CTL_MOD);
      accept_pauses_ = true;
      return;
    }
    // Other threads close connections meanwhile, so the limit is approximate by a few.
    const std::size_t open = listener.connections;
    // The second limit bounds the connections that only receive a refusal.
    if (open >= 2 * most) continue;  // closed without a sentence
    auto connection =
        std::make_unique<Connection>(listener, std::move(socket), peer, options_.max_body_bytes);
    ++listener.connections;
    const bool is_one_too_many = open >= most && !make_room(listener);
    Loop& to = is_front() || is_one_too_many ? *this : least_busy();
    ++to.count_;
    if (&to != this) {
      to.pass(std::move(connection));
      continue;
    }
    Connection& added = *connection;
    adopt(std::move(connection));
    if (is_one_too_many && !added.is_over) refuse(added, http_status::kUnavailable);
  }
}

// Closes the browser's connection that has waited for longest.
bool HttpService::Loop::make_room(const Listener& listener) {
  if (listener.options.use != HttpUse::kBrowser) return false;
  Connection* longest = nullptr;
  for (const std::unique_ptr<Connection>& each : connections_) {
    if (&each->listener == &listener && each->is_reading() &&
        (longest == nullptr || each->waits_since < longest->waits_since)) {
      longest = each.get();
    }
  }
  if (longest != nullptr) end(*longest);
  return longest != nullptr;
}

HttpService::Loop& HttpService::Loop::least_busy() const {
  Loop* least = shared_.loops.front().get();
  for (const std::unique_ptr<Loop>& each : shared_.loops) {
    if (each.get() != shared_.front && each->count() < least->count()) least = each.get();
  }
  return *least;
}

void HttpService::Loop::take_inbox() {
  std::vector<std::unique_ptr<Connection>> passed;
  {
    // The lock covers only the swap, so the thread that passes connections never waits for a turn.
    const std::scoped_lock lock(mutex_);
    passed.swap(inbox_);
  }
  for (std::unique_ptr<Connection>& each : passed) adopt(std::move(each));
}

// Runs at the end of a turn, when nothing in this loop refers to the connections any more.
void HttpService::Loop::hand_over() {
  for (Connection* const each : std::exchange(moving_, {})) {
    if (each->is_over) continue;
    each->is_moving = false;
    std::unique_ptr<Connection> moved = remove(*each);
    // Removed before the other loop can add it: only one of the sets may report its events.
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, moved->socket(), nullptr);
    Loop& to = least_busy();
    ++to.count_;
    // From here on only the other loop may use the connection.
    to.pass(std::move(moved));
  }
}

// Takes constant time, by a swap with the last connection.
std::unique_ptr<HttpService::Connection> HttpService::Loop::remove(Connection& connection) {
  hold(connection, 0);
  std::erase(resumed_, &connection);
  connection.is_resumed = false;
  std::unique_ptr<Connection>& place = connections_[connection.position];
  connections_.back()->position = connection.position;
  std::swap(place, connections_.back());
  std::unique_ptr<Connection> removed = std::move(connections_.back());
  connections_.pop_back();
  --count_;
  return removed;
}

// Takes over a connection that was just accepted, or that the front thread has begun to read.
// `count_` includes it already.
void HttpService::Loop::adopt(std::unique_ptr<Connection> passed) {
  Connection& connection = *passed;
  connection.loop = this;
  connection.position = connections_.size();
  connections_.push_back(std::move(passed));
  over_.reserve(connections_.capacity());  // so that end() needs no memory
  connection.watched = EPOLLIN;
  if (!watch(connection.socket(), EPOLLIN, &connection, EPOLL_CTL_ADD)) {
    end(connection);
  } else if (connection.parser.begun()) {
    go_on(connection);
  } else {
    begin(connection);
  }
}

void HttpService::Loop::begin(Connection& connection) {
  const int on = 1;
  // Replies are written in one piece, so waiting to fill a segment would only add delay.
  ::setsockopt(connection.socket(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  connection.waits_since = now_;
  connection.deadline = now_ + options_.request_timeout;
  TlsIdentity* const identity = connection.listener.options.identity.get();
  if (identity == nullptr) return;
  connection.tls = TlsAccepted::over(connection.socket(), *identity);
  if (!connection.tls) end(connection);  // no memory
}

// The head is complete, and perhaps more has come.
void HttpService::Loop::go_on(Connection& connection) {
  hold(connection, connection.parser.request().body.size());
  if (connection.parser.complete()) {
    ask(connection);
  } else {
    let_send(connection);
  }
  // epoll reports neither bytes that the other loop has read nor those that TLS has buffered.
  if (!connection.is_over && (!connection.rest.empty() || connection.tls)) resume(connection);
}

// Sends 100 to a client that waits for it before the body, once.
void HttpService::Loop::let_send(Connection& connection) {
  // Only after the head has passed all checks: a client that is refused sends no body.
  if (!connection.has_continued && connection.parser.expects_continue()) {
    connection.has_continued = true;
    connection.out = kContinue;
    send(connection);
  }
}

void HttpService::Loop::receive(Connection& connection) {
  const ssize_t size = ::recv(connection.socket(), buffer_.data(), buffer_.size(), 0);
  // While lingering, too: the end of the client's input ends the connection before the time is
  // over.
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) {
    on_reader_end(connection);
  } else if (size > 0 && !connection.is_lingering) {
    take(connection, std::string_view(buffer_.data(), static_cast<std::size_t>(size)));
  }
}

// The end of the reader's input is that of its stream.
void HttpService::Loop::on_reader_end(Connection& connection) {
  connection.lines ? connection.lines->end() : end(connection);
}

// epoll does not report bytes that TLS has taken from the socket. So this reads on until there is a
// request, or continues in the next turn, because other connections wait, too.
void HttpService::Loop::receive_tls(Connection& connection) {
  const auto reads = [&connection] {
    return !connection.is_over && !connection.is_lingering && !connection.is_asked &&
           !connection.is_moving && connection.out.empty() && connection.rest.empty();
  };
  // Where the thread has other work, a connection has one read in each turn.
  const std::size_t share = connection.use() == HttpUse::kService ? kReceiveBytes : 1;
  std::size_t total = 0;
  while (reads()) {
    if (total >= share) {
      if (connection.tls->has_bytes()) resume(connection);
      return;
    }
    std::error_code error;
    const std::size_t size = connection.tls->read_some(buffer_, error);
    total += size;
    if (!error) {
      wait_for(connection, EPOLLIN);
      take(connection, std::string_view(buffer_).substr(0, size));
    } else if (error == asio::error::would_block) {
      wait_for(connection, connection.tls->waits_for() == POLLOUT ? EPOLLOUT : EPOLLIN);
      return;
    } else if (connection.tls->is_plain_http()) {
      connection.tls.reset();  // such a client can read no other answer
      refuse(connection, error_reply(http_status::kBadRequest, kHttpsAlone));
    } else {
      on_reader_end(connection);
      return;
    }
  }
}

void HttpService::Loop::take(Connection& connection, std::string_view bytes) {
  // The reader of a stream may only end it.
  while (!bytes.empty() && !connection.is_over && !connection.is_lingering && !connection.lines) {
    // Requests are answered in order: input behind an unanswered request is stored until its reply
    // is sent.
    if (connection.is_asked || connection.is_moving || !connection.out.empty()) {
      connection.rest.append(bytes);
      return;
    }
    if (!feed(connection, bytes)) return;
  }
}

// Removes from `bytes` what belongs to the request. False: nothing is left to do.
bool HttpService::Loop::feed(Connection& connection, std::string_view& bytes) {
  HttpRequestParser& parser = connection.parser;
  // The time limit covers the whole request, so a client cannot extend it byte by byte.
  if (!parser.begun()) connection.deadline = now_ + options_.request_timeout;
  if (const int refusal = parser.feed(bytes); refusal != 0) {
    refuse(connection, refusal);
    return false;
  }
  bytes.remove_prefix(parser.taken());
  hold(connection, parser.request().body.size());
  // The front thread answers only quick requests, so that it stays free for accepting and health
  // checks. It moves others as soon as the path is known, before the body arrives.
  const bool moves =
      is_front() && parser.head_complete() && !options_.is_quick(parser.request().path);
  if (parser.complete() && !moves) {
    ask(connection);
    return true;
  }
  // An unauthorised client is refused before any of its body is stored.
  if (parser.head_complete() && !parser.complete()) {
    if (const std::optional<HttpReply> refusal = refusal_of(connection)) {
      refuse(connection, *refusal);
      return false;
    }
  }
  if (moves) {
    connection.is_moving = true;
    moving_.push_back(&connection);
    return true;
  }
  // The bodies of incomplete requests are limited together: many clients could otherwise fill the
  // memory without ever completing one.
  if (held_bytes_ > options_.max_held_bytes) {
    refuse(connection, http_status::kUnavailable);
    return false;
  }
  if (parser.head_complete()) let_send(connection);
  return true;
}

// Once for each request.
std::optional<HttpReply> HttpService::Loop::refusal_of(Connection& connection) {
  if (std::exchange(connection.is_checked, true)) return std::nullopt;
  if (connection.refusal) return error_reply(http_status::kForbidden, *connection.refusal);
  HttpServerRequest& request = connection.parser.request();
  request.may_change = true;  // a client that may make requests here may change the run
  const auto& refuse = connection.listener.options.refuse;
  return refuse ? refuse(request) : std::nullopt;
}

void HttpService::Loop::ask(Connection& connection) {
  connection.is_asked = true;
  connection.asked_at = now_;
  hold(connection, 0);  // from here on the handler bounds it
  if (const std::optional<HttpReply> refusal = refusal_of(connection)) {
    connection.answer(*refusal);
    return;
  }
  // An exception of one request must not end the thread, which serves all connections.
  try {
    handler_->ask(connection);
  } catch (const std::bad_alloc&) {
    if (connection.is_asked) {
      connection.answer(error_reply(http_status::kUnavailable, "there is not enough memory"));
    }
  } catch (const std::exception& error) {
    if (connection.is_asked) {
      connection.answer(error_reply(http_status::kServerError, error.what()));
    }
  }
}

// Whether the client may make another request after the present one.
bool HttpService::Loop::may_follow(const Connection& connection) const {
  // During the stop every reply announces the end of its connection.
  if (shared_.stage.load(std::memory_order_relaxed) != Shared::Stage::kServing) return false;
  return connection.use() == HttpUse::kService
             ? connection.parser.may_be_followed()
             : connection.use() == HttpUse::kBrowser && connection.parser.may_stay_open();
}

void HttpService::Loop::put(Connection& connection, const HttpReply& reply, bool stays_open) {
  connection.put(reply, stays_open);
  connection.deadline = now_ + options_.write_timeout;
  handler_->answered(connection, reply.status, connection.out.size());
}

void HttpService::Loop::answer(Connection& connection, const HttpReply& reply) {
  // A stream ends with its connection, which tells clients without chunks.
  put(connection, reply, may_follow(connection) && !reply.lines);
  if (reply.lines && connection.request().method != "HEAD") {
    // Sent in the next turn, so that lines that come together are sent together.
    connection.follow(reply.lines, [this, &connection] {
      if (connection.is_resumed) return;
      resume(connection);
      wake();
    });
  }
  connection.is_checked = false;
  connection.is_asked = false;
  connection.has_continued = false;
  // Last, because the lines above still read the request that is dropped here.
  connection.parser.reset();
  send(connection);
}

void HttpService::Loop::refuse(Connection& connection, int status) {
  refuse(connection, error_reply(status, refusal_sentence(status, options_.max_body_bytes)));
}

void HttpService::Loop::refuse(Connection& connection, const HttpReply& reply) {
  connection.asked_at = {};
  put(connection, reply, /*stays_open=*/false);
  hold(connection, 0);
  send(connection);
}

void HttpService::Loop::wait_for(Connection& connection, std::uint32_t events) {
  if (std::exchange(connection.watched, events) != events) {
    watch(connection.socket(), events, &connection, EPOLL_CTL_MOD);
  }
}

void HttpService::Loop::send(Connection& connection) {
  bool has_progress = false;
  while (connection.out_sent < connection.out.size() || connection.next_lines()) {
    std::error_code error;
    const std::size_t size =
        connection.send_some(std::string_view(connection.out).substr(connection.out_sent), error);
    connection.out_sent += size;
    has_progress = has_progress || size > 0;
    if (error == asio::error::would_block) {
      // Waits only for room in the socket until the reply is sent. (TLS may need to read first.)
      const bool wants_to_receive = connection.tls && connection.tls->waits_for() == POLLIN;
      // The time limit is extended only by progress.
      if (has_progress) connection.deadline = now_ + options_.write_timeout;
      wait_for(connection, wants_to_receive ? EPOLLIN : EPOLLOUT);
      return;
    }
    if (error) {
      end(connection);
      return;
    }
  }
  after_sending(connection);
}

void HttpService::Loop::after_sending(Connection& connection) {
  // Idle connections must not keep the memory of a large reply.
  constexpr std::size_t kKeptBytes = std::size_t{64} << 10U;
  if (connection.out.capacity() > kKeptBytes) connection.out = std::string();
  connection.out.clear();
  connection.out_sent = 0;
  wait_for(connection, EPOLLIN);
  if (connection.lines) return;  // more will come
  if (!connection.rest.empty() || (connection.tls && connection.tls->has_bytes())) {
    resume(connection);
  }
  // Stops only the sending side; the client's remaining bytes are read until kServiceLinger is
  // over.
  if (connection.is_last) {
    if (connection.tls) connection.tls->finish();
    ::shutdown(connection.socket(), SHUT_WR);
    connection.is_lingering = true;
    connection.deadline = now_ + kServiceLinger;
    // The input of a stream's reader has been read all along.
    if (connection.is_stream) end(connection);
  } else if (!connection.parser.begun()) {
    connection.waits_since = now_;
    connection.deadline = now_ + options_.idle_timeout;
  }
}

void HttpService::Loop::end(Connection& connection) {
  if (std::exchange(connection.is_over, true)) return;
  over_.push_back(&connection);
  --connection.listener.connections;
}

// Deletes connections only between turns, because events and lists of the turn may still refer to
// them.
void HttpService::Loop::bury() {
  for (Connection* const each : over_) remove(*each);
  over_.clear();
}

void HttpService::Loop::sweep() {
  swept_ = now_;
  if (std::exchange(accept_pauses_, false)) {
    for (Listener& each : shared_.listeners) {
      watch(each.socket.number(), EPOLLIN, &each, EPOLL_CTL_MOD);
    }
  }
  for (const std::unique_ptr<Connection>& each : connections_) {
    // A request that the handler is working on has no time limit here; the handler has its own. Nor
    // has the time between two lines.
    const bool awaits_lines = each->lines && each->out.empty();
    if (each->is_asked || awaits_lines || now_ < each->deadline) continue;
    // An incomplete request gets 408; an idle or stuck connection is closed without a reply.
    if (each->is_reading() && (each->parser.begun() || each->gets_timeout_reply())) {
      attempt(*each, [this, &each] { refuse(*each, http_status::kRequestTimeout); });
    } else {
      end(*each);
    }
  }
}

// Connections that were passed on before the front thread's end are answered, too.
bool HttpService::Loop::is_done_stopping() {
  // Read before the inbox: what the front thread passed on before its end is then in the inbox.
  const bool may_more_come = shared_.front != nullptr && !is_front() && !shared_.front_is_over;
  if (!may_more_come) take_inbox();
  const bool is_done = (connections_.empty() && !may_more_come) || now_ >= stop_at_;
  if (is_done && is_front()) {
    shared_.front_is_over = true;
    for (const std::unique_ptr<Loop>& each : shared_.loops) each->wake();
  }
  return is_done;
}

// Runs in every turn after stop(): closes idle connections.
void HttpService::Loop::stop_once() {
  if (stop_at_ == ServiceClock::time_point::max()) {
    stop_at_ = now_ + options_.stop_grace;
    // Closes the listening sockets first, so that the kernel refuses new clients from here on.
    if (accepts()) {
      for (Listener& each : shared_.listeners) each.socket.reset();
    }
    take_inbox();
  }
  for (const std::unique_ptr<Connection>& each : connections_) {
    if (each->lines && !each->lines->has_ended()) each->lines->end();
    // A connection that is reading or answering gets stop_grace to finish.
    if (each->is_idle()) end(*each);
  }
}

}  // namespace disttf::net
