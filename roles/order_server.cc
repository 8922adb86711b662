#include "roles/order_server.h"

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "net/dial.h"
#include "net/order.h"
#include "net/server.h"
#include "roles/log.h"
#include "roles/outcome.h"
#include "roles/stop_signal.h"
#include "roles/task_listener.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using Connection = std::shared_ptr<net::ServerConnection>;
using Nodes = std::span<const net::OrderNode>;
using Answer = std::variant<net::OrderResult, net::Refusal>;

class OrderServer {
 public:
  OrderServer(const Task& task, std::string version) : task_(task), version_(std::move(version)) {}
  int run();

 private:
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  asio::awaitable<void> serve(Connection connection);
  asio::awaitable<Answer> compute(Nodes nodes);
  asio::awaitable<Answer> add(Nodes operands);
  asio::awaitable<Answer> ask(net::TaskId other, Nodes nodes);
  asio::awaitable<Answer> ask_on(Connection connection, Nodes nodes);
  [[nodiscard]] Answer lost(const net::TaskId& other, const std::string& why) const;

  const Task& task_;
  const std::string version_;
  asio::io_context context_{1};
  std::unique_ptr<net::Listener> listener_;
};

int OrderServer::run() {
  const StopSignal stop([this](int) { asio::post(context_, [this] { context_.stop(); }); });
  net::ServerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
  hooks.on_connection = [this](Connection connection) { return serve(std::move(connection)); };
  hooks.on_error = [](std::exception_ptr exception) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::exception& error) {
      log_error(error.what());
    }
  };
  listener_ = open_task_listener(context_, task_, std::move(hooks));
  log_info("Waiting for orders");
  context_.run();
  log_info(std::string("stopped by ") + signal_name(stop.number()));
  return kDone;
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
  while (!co_await connection->read_header(header, task_.timeouts.peer)) {
    std::vector<std::byte> body(header.kind == FrameKind::kOrder
                                    ? std::min(header.body_size, net::kMaxControlBodyBytes)
                                    : 0);
    net::Order order;
    if (header.kind != FrameKind::kOrder || header.body_size != body.size() ||
        co_await connection->read_body(body, task_.timeouts.silence) || net::decode(body, order)) {
      connection->refuse(
          {.exit_code = kError, .sentence = self_text() + " was sent no valid order"},
          header.request_id);
      co_return;
    }
    const Answer answer = co_await compute(order);
    if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
      log_warning(connection->peer_text() + " gets no result: " + refusal->sentence);
      connection->refuse(*refusal, header.request_id);
      co_return;
    }
    connection->send({.kind = FrameKind::kResult, .request_id = header.request_id},
                     net::encode(std::get<net::OrderResult>(answer)));
  }
}

// Ends: an operand is a shorter order than what it is an operand of, and a task that is asked for
// its own part does not ask on.
asio::awaitable<Answer> OrderServer::compute(Nodes nodes) {
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

asio::awaitable<Answer> OrderServer::add(Nodes operands) {
  std::uint64_t sum = 0;
  for (int each = 0; each < 2; ++each) {
    const Answer answer = co_await compute(operands);
    if (std::holds_alternative<net::Refusal>(answer)) {
      co_return answer;
    }
    sum += static_cast<std::uint64_t>(std::get<net::OrderResult>(answer).value);
    operands = operands.subspan(net::expression_size(operands));
  }
  log_info("added up: " + std::to_string(static_cast<std::int64_t>(sum)));
  co_return net::OrderResult{.value = static_cast<std::int64_t>(sum)};
}

asio::awaitable<Answer> OrderServer::ask(net::TaskId other, Nodes nodes) {
  if (other.index >= task_.cluster.tasks_of(other.job).size()) {
    co_return net::Refusal{
        .exit_code = kUsage,
        .sentence = "there is no " + net::to_string(other) + " in the cluster of " + self_text()};
  }
  const net::Dialed dialed = co_await net::dial(context_, task_.cluster.address_of(other),
                                                {.cluster = net::hash_of(task_.cluster),
                                                 .from = task_.self,
                                                 .to = other,
                                                 .purpose = net::ChannelPurpose::kOrder,
                                                 .incarnation = task_.incarnation},
                                                {}, task_.timeouts.silence);
  if (dialed.error == net::WireError::kRefused) {
    co_return dialed.refusal;
  }
  if (!dialed.connection) {
    co_return lost(other, dialed.error.message());
  }
  Answer answer = co_await ask_on(dialed.connection, nodes);
  dialed.connection->close();
  co_return answer;
}

asio::awaitable<Answer> OrderServer::ask_on(Connection connection, Nodes nodes) {
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

Answer OrderServer::lost(const net::TaskId& other, const std::string& why) const {
  return net::Refusal{
      .exit_code = static_cast<std::uint8_t>(kLostPeers),
      .sentence = self_text() + " cannot reach " + describe(task_.cluster, other) + ": " + why};
}

}  // namespace

int run_order_server(const Task& task, const std::string& version) {
  return OrderServer(task, version).run();
}

}  // namespace disttf::roles
