#include "roles/servers/order_server.h"

#include <fcntl.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "data/file.h"
#include "net/transport/as_tuple.h"
#include "net/transport/dial.h"
#include "net/transport/server.h"
#include "net/transport/spawn.h"
#include "net/wire/order.h"
#include "net/wire/run_order.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/process/log.h"
#include "roles/process/stop_signal.h"
#include "roles/process/task_listener.h"
#include "roles/run/outcome.h"
#include "roles/servers/ordered_task.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using Connection = std::shared_ptr<net::ServerConnection>;
using Nodes = std::span<const net::OrderNode>;
using OrderAnswer = std::variant<net::OrderResult, net::Refusal>;

class OrderServer {
 public:
  explicit OrderServer(const ServerOptions& options)
      : task_(options.task),
        version_(options.version),
        child_(context_, options.task, options.task_arguments) {}
  int run();

 private:
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  void open_port();
  void wait_for_orders();
  void on_signal();
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  asio::awaitable<void> serve(Connection connection);
  asio::awaitable<bool> take(const Connection& connection, const FrameHeader& header);

  asio::awaitable<OrderAnswer> compute(Nodes nodes);
  asio::awaitable<OrderAnswer> add(Nodes operands);
  asio::awaitable<OrderAnswer> ask(net::TaskId other, Nodes nodes);
  asio::awaitable<OrderAnswer> ask_on(Connection connection, Nodes nodes);
  [[nodiscard]] OrderAnswer lost(const net::TaskId& other, const std::string& why) const;

  [[nodiscard]] std::optional<net::Refusal> train(const Connection& connection,
                                                  const net::RunOrder& order);
  asio::awaitable<void> watch_child();
  asio::awaitable<void> beat(Connection connection);
  void let_go();
  void spawn(asio::awaitable<void> work);

  const Task& task_;
  const std::string version_;
  asio::io_context context_{1};
  data::FileDescriptor port_;                // the listening socket; a child gets it, too
  std::unique_ptr<net::Listener> listener_;  // null while the port is a driver's
  Connection leash_;                         // null: nobody's
  OrderedTask child_;
  bool is_told_to_stop_ = false;
};

int OrderServer::run() {
  const StopSignal stop([this](int) { asio::post(context_, [this] { on_signal(); }); });
  open_port();
  wait_for_orders();
  context_.run();
  log_info(std::string("stopped by ") + signal_name(stop.number()));
  return kDone;
}

void OrderServer::on_signal() {
  is_told_to_stop_ = true;
  if (child_.is_running()) {
    child_.stop();
  } else {
    context_.stop();
  }
}

void OrderServer::open_port() {
  const std::uint16_t port = task_.cluster.address_of(task_.self).port;
  try {
    port_ = data::FileDescriptor(task_.listen_fd >= 0
                                     ? task_.listen_fd
                                     : listen_after_predecessor(context_, port).release());
  } catch (const std::system_error& error) {
    throw cannot_listen(task_, error);
  }
}

// What has connected while the port was a driver's, and nobody has accepted, is served now.
void OrderServer::wait_for_orders() {
  net::ServerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
  hooks.on_connection = [this](Connection connection) { return serve(std::move(connection)); };
  hooks.on_error = log_exception;
  Task task = task_;
  task.listen_fd = fcntl(port_.number(), F_DUPFD_CLOEXEC, 0);
  if (task.listen_fd < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot listen again");
  }
  listener_ = open_task_listener(context_, task, std::move(hooks), true);
  log_info("Waiting for orders");
}

std::variant<net::Welcome, net::Refusal> OrderServer::welcome(const net::Hello& hello) const {
  if (hello.purpose != net::ChannelPurpose::kOrder &&
      hello.purpose != net::ChannelPurpose::kProbe) {
    return net::Refusal{
        .exit_code = kUsage,
        .sentence = self_text() + " is a server, which waits for orders and trains nothing"};
  }
  return net::Welcome{.incarnation = task_.incarnation};
}

asio::awaitable<void> OrderServer::serve(Connection connection) {
  FrameHeader header;
  while (!co_await connection->read_header(
      header, connection == leash_ ? task_.timeouts.silence : task_.timeouts.peer)) {
    const bool is_heartbeat = header.kind == FrameKind::kHeartbeat && header.body_size == 0;
    if (!is_heartbeat && !co_await take(connection, header)) {
      break;
    }
  }
  if (connection == leash_) {
    let_go();
  }
}

// One order. False: it was refused.
asio::awaitable<bool> OrderServer::take(const Connection& connection, const FrameHeader& header) {
  std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
  net::Order order;
  net::RunOrder run;
  OrderAnswer answer =
      net::Refusal{.exit_code = kError, .sentence = self_text() + " was sent no valid order"};
  const bool is_run = header.kind == FrameKind::kRunTask;
  if ((is_run || header.kind == FrameKind::kOrder) && header.body_size == body.size() &&
      !co_await connection->read_body(body, task_.timeouts.silence)) {
    if (is_run && !net::decode(body, run)) {
      const std::optional<net::Refusal> refusal = train(connection, run);
      if (!refusal) {
        co_return true;
      }
      answer = *refusal;
    } else if (!is_run && !net::decode(body, order)) {
      answer = co_await compute(order);
    }
  }
  if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
    log_warning(connection->peer_text() + " gets no result: " + refusal->sentence);
    connection->refuse(*refusal, header.request_id);
    co_return false;
  }
  connection->send({.kind = FrameKind::kResult, .request_id = header.request_id},
                   net::encode(std::get<net::OrderResult>(answer)));
  co_return true;
}

// Ends: an operand is a shorter order than what it is an operand of, and a task that is asked for
// its own part does not ask on.
asio::awaitable<OrderAnswer> OrderServer::compute(Nodes nodes) {
  const net::OrderNode& node = nodes.front();
  if (node.task != task_.self) {
    co_return co_await ask(node.task, nodes.first(net::expression_size(nodes)));
  }
  switch (node.operation) {
    case net::Operation::kAdd:
      co_return co_await add(nodes.subspan(1));
    case net::Operation::kAsk:
      co_return co_await compute(nodes.subspan(1));
    case net::Operation::kDescribe:
      co_return net::OrderResult{.text = version_};
    default:
      co_return net::OrderResult{.value = node.value};
  }
}

asio::awaitable<OrderAnswer> OrderServer::add(Nodes operands) {
  std::uint64_t sum = 0;
  for (int each = 0; each < 2; ++each) {
    const OrderAnswer answer = co_await compute(operands);
    if (std::holds_alternative<net::Refusal>(answer)) {
      co_return answer;
    }
    sum += static_cast<std::uint64_t>(std::get<net::OrderResult>(answer).value);
    operands = operands.subspan(net::expression_size(operands));
  }
  log_info("added up: " + std::to_string(static_cast<std::int64_t>(sum)));
  co_return net::OrderResult{.value = static_cast<std::int64_t>(sum)};
}

asio::awaitable<OrderAnswer> OrderServer::ask(net::TaskId other, Nodes nodes) {
  if (other.index >= task_.cluster.tasks_of(other.job).size()) {
    co_return net::Refusal{
        .exit_code = kUsage,
        .sentence = "there is no " + net::to_string(other) + " in the cluster of " + self_text()};
  }
  net::NameLookup lookup;
  const net::Dialed dialed = co_await net::dial(context_, task_.cluster.address_of(other),
                                                {.cluster = net::hash_of(task_.cluster),
                                                 .from = task_.self,
                                                 .to = other,
                                                 .purpose = net::ChannelPurpose::kOrder,
                                                 .incarnation = task_.incarnation},
                                                {}, task_.timeouts.silence, lookup);
  if (dialed.error == net::WireError::kRefused) {
    co_return dialed.refusal;
  }
  if (!dialed.connection) {
    co_return lost(other, dialed.error.message());
  }
  OrderAnswer answer = co_await ask_on(dialed.connection, nodes);
  dialed.connection->close();
  co_return answer;
}

asio::awaitable<OrderAnswer> OrderServer::ask_on(Connection connection, Nodes nodes) {
  connection->send({.kind = FrameKind::kOrder, .request_id = 1}, net::encode(nodes));
  FrameHeader header;
  std::error_code error = co_await connection->read_header(header, task_.timeouts.peer);
  std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
  if (!error && header.body_size == body.size()) {
    error = co_await connection->read_body(body, task_.timeouts.silence);
  }
  net::OrderResult result;
  net::Refusal refusal;
  if (!error && header.kind == FrameKind::kResult && !net::decode(body, result)) {
    co_return result;
  }
  if (!error && header.kind == FrameKind::kRefused && !net::decode(body, refusal)) {
    co_return refusal;
  }
  const net::TaskId& other = connection->hello().from;
  co_return lost(other, error ? error.message() : "its answer makes no sense");
}

OrderAnswer OrderServer::lost(const net::TaskId& other, const std::string& why) const {
  return net::Refusal{
      .exit_code = static_cast<std::uint8_t>(kLostPeers),
      .sentence = self_text() + " cannot reach " + describe(task_.cluster, other) + ": " + why};
}

// Its task of a run, until it ends or the channel breaks. nullopt: it has been started.
std::optional<net::Refusal> OrderServer::train(const Connection& connection,
                                               const net::RunOrder& order) {
  const auto refusal = [this](ExitCode code, const std::string& why) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(code),
                        .sentence = self_text() + " " + why};
  };
  if (task_.self.job != net::Job::kPs && task_.self.job != net::Job::kWorker) {
    return refusal(kUsage, "is neither ps nor worker, and trains nothing");
  }
  if ((leash_ && leash_ != connection) || child_.is_running() || is_told_to_stop_) {
    return refusal(kLostPeers, "is at work already");
  }
  try {
    net::validate(net::driven(task_.cluster), task_.self);
    if (!leash_) {
      leash_ = connection;
      spawn(beat(connection));
    }
    listener_.reset();
    log_info("ordered to train by " + connection->peer_text());
    child_.start(order, port_.number());
  } catch (const std::exception& error) {
    return refusal(kError, std::string("cannot train: ") + error.what());
  }
  spawn(watch_child());
  return std::nullopt;
}

asio::awaitable<void> OrderServer::watch_child() {
  const net::TaskEnd end = co_await child_.ended();
  log_info("the task " + to_string(Ending{.exit_code = end.exit_code, .signal = end.signal}));
  if (leash_) {
    leash_->send({.kind = FrameKind::kTaskEnded}, net::encode(end));
  }
  if (is_told_to_stop_) {
    if (leash_) {
      co_await leash_->drained(task_.timeouts.silence);
    }
    context_.stop();
  } else if (!leash_) {
    wait_for_orders();
  }
}

asio::awaitable<void> OrderServer::beat(Connection connection) {
  asio::steady_timer timer(context_);
  while (connection->is_open()) {
    connection->send({.kind = FrameKind::kHeartbeat});
    timer.expires_after(kHeartbeatInterval);
    co_await timer.async_wait(net::kAsTuple);
  }
}

// The driver has gone, or is done with this server.
void OrderServer::let_go() {
  leash_.reset();
  if (child_.is_running()) {
    log_warning("the driver was lost: ending its task");
    child_.stop();  // whoever watches the child opens the port
  } else {
    wait_for_orders();
  }
}

void OrderServer::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), log_exception);
}

}  // namespace

int run_order_server(const ServerOptions& options) { return OrderServer(options).run(); }

}  // namespace disttf::roles
