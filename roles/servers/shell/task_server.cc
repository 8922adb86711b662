#include "roles/servers/shell/task_server.h"

#include <fcntl.h>

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "data/file.h"
#include "net/tcp/dial.h"
#include "net/tcp/listener.h"
#include "net/tcp/spawn.h"
#include "net/wire/messages.h"
#include "net/wire/server_requests.h"
#include "roles/launch/shell/child_process.h"
#include "roles/servers/core/compute_evaluation.h"
#include "roles/servers/core/server_controller.h"
#include "roles/servers/shell/requested_task.h"
#include "run/outcome.h"
#include "run/process/event_loop.h"
#include "run/process/log.h"
#include "run/process/ps_channel.h"
#include "run/process/stop_signal.h"
#include "run/process/task_listener.h"
#include "storage/download/datasets.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using Connection = std::shared_ptr<net::ServerConnection>;
using Nodes = std::span<const net::ComputeNode>;
using ComputeAnswer = std::variant<net::ComputeResult, net::Refusal>;

class TaskServer {
 public:
  explicit TaskServer(const TaskServerOptions& options)
      : task_(options.task),
        version_(options.version),
        timer_(context_),
        child_(context_, options.task, options.task_arguments),
        controller_(options.task) {}
  int run();

 private:
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }
  void listen();
  asio::awaitable<void> serve(Connection connection);
  asio::awaitable<bool> take(ServerConnectionId id, const Connection& connection,
                             const FrameHeader& header);

  asio::awaitable<ComputeAnswer> compute(Nodes request);
  asio::awaitable<ComputeAnswer> ask(net::TaskId other, Nodes nodes);
  asio::awaitable<ComputeAnswer> ask_on(Connection connection, Nodes nodes);
  [[nodiscard]] ComputeAnswer lost(const net::TaskId& other, const std::string& why) const;

  [[nodiscard]] std::optional<net::Refusal> train(ServerConnectionId id,
                                                  const Connection& connection,
                                                  const net::RunTaskRequest& request);
  asio::awaitable<void> watch_child();
  asio::awaitable<void> end_after(Connection last);
  // Carries out the controller's effects. To be called after each event.
  void act();
  void carry_out(const OpenServerPort& request);
  void carry_out(const CloseServerPort& /*request*/) { listener_.reset(); }
  void carry_out(const StartRequestedTask& request);
  void carry_out(const StopRequestedTask& /*request*/) { child_.stop(); }
  void carry_out(const SendToDriver& request);
  static void carry_out(const ServerLine& request);
  void carry_out(const EndServer& request);
  void spawn(asio::awaitable<void> work);
  void reap_orphans();

  const Task& task_;
  const StopSignal* stop_ = nullptr;  // belongs to run()
  const std::string version_;
  asio::io_context context_{1};
  asio::signal_set child_signals_{context_, SIGCHLD};
  asio::steady_timer timer_;                 // at the controller's deadline, if there is one
  data::FileDescriptor port_;                // the listening socket, which a child inherits
  std::unique_ptr<net::Listener> listener_;  // null while a driver's task owns the port
  ServerConnectionId last_id_ = 0;
  std::map<ServerConnectionId, Connection> connections_;
  RequestedTask child_;
  net::RunTaskRequest run_task_request_;        // the last request
  std::optional<net::Refusal> cannot_start_{};  // why its task did not start
  ServerController controller_;
};

int TaskServer::run() {
  const StopSignal stop([this](int) {
    // Posted, because only the loop may use the controller.
    asio::post(context_, [this] {
      controller_.stop();
      act();
    });
  });
  stop_ = &stop;
  reap_orphans();
  listen();
  act();
  context_.run();
  log_info(std::string("stopped by ") + signal_name(stop.number()));
  return kDone;
}

// Reaps orphans, which a server gets as process 1 of a container.
void TaskServer::reap_orphans() {
  child_signals_.async_wait([this](std::error_code error, int /*signal*/) {
    if (!error) {
      reap_others([this](pid_t pid) { return child_.is(pid); });
      reap_orphans();
    }
  });
}

void TaskServer::listen() {
  const net::Address& listed = task_.cluster.address_of(task_.self);
  try {
    port_ = data::FileDescriptor(task_.listen_fd >= 0
                                     ? task_.listen_fd
                                     : listen_where_listed(context_, listed, *stop_).release());
  } catch (const std::system_error& error) {
    throw cannot_listen(task_, error);
  }
}

asio::awaitable<void> TaskServer::serve(Connection connection) {
  // From 1: the controller uses 0 for no driver.
  const ServerConnectionId id = ++last_id_;
  connections_.emplace(id, connection);
  FrameHeader header;
  // A driver sends heartbeats, so it has a shorter timeout than other peers.
  while (!co_await connection->read_header(
      header, controller_.is_driver(id) ? task_.timeouts.heartbeat_timeout : task_.timeouts.peer)) {
    if (!net::is_bodiless<net::Heartbeat>(header) && !co_await take(id, connection, header)) {
      break;
    }
  }
  // Before closed(), whose effects must not send on this connection.
  connections_.erase(id);
  controller_.closed(id);
  act();
}

// Whether the number is of a data set of this version, or leaves the choice to the server.
bool is_known_data(std::uint8_t number) {
  return number == net::kAnyData || find_dataset_of_number(number) != nullptr;
}

// Serves one request; false: it was refused.
asio::awaitable<bool> TaskServer::take(ServerConnectionId id, const Connection& connection,
                                       const FrameHeader& header) {
  // The header is not trusted: allocate no more than a control frame may have.
  std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
  net::ComputeRequest request;
  net::RunTaskRequest run;
  ComputeAnswer answer =
      net::Refusal{.exit_code = kError, .sentence = self_text() + " received an invalid request"};
  const bool is_run = !net::RunTaskFrame{}.from_header(header);
  if ((is_run || !net::ComputeFrame{}.from_header(header)) && header.body_size == body.size() &&
      !co_await connection->read_body(body, task_.timeouts.heartbeat_timeout)) {
    if (is_run && !net::decode(body, run) && is_known_data(run.data)) {
      const std::optional<net::Refusal> refusal = train(id, connection, run);
      if (!refusal) {
        co_return true;
      }
      answer = *refusal;
    } else if (!is_run && !net::decode(body, request)) {
      answer = co_await compute(request);
    }
  }
  if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
    log_warning(connection->peer_text() + " is refused: " + refusal->sentence);
    connection->refuse(*refusal, header.request_id);
    co_return false;
  }
  connection->send(net::ResultFrame{header.request_id}.to_header(),
                   net::encode(std::get<net::ComputeResult>(answer)));
  co_return true;
}

asio::awaitable<ComputeAnswer> TaskServer::compute(Nodes request) {
  std::vector<net::ComputeResult> answers;
  std::size_t logged = 0;
  while (true) {
    // Evaluates from the start with the answers so far until none is missing. The graphs are tiny.
    ComputeStep step = evaluate(request, task_, version_, answers);
    // Each evaluation repeats the earlier sums; only the new ones are logged.
    for (; logged < step.sums.size(); ++logged) {
      log_info("sum: " + std::to_string(step.sums[logged]));
    }
    if (auto* const result = std::get_if<net::ComputeResult>(&step.outcome)) {
      co_return std::move(*result);
    }
    if (auto* const refusal = std::get_if<net::Refusal>(&step.outcome)) {
      co_return std::move(*refusal);
    }
    const auto& question = std::get<AskServer>(step.outcome);
    ComputeAnswer answer = co_await ask(question.task, question.part);
    if (std::holds_alternative<net::Refusal>(answer)) {
      co_return answer;
    }
    answers.push_back(std::move(std::get<net::ComputeResult>(answer)));
  }
}

asio::awaitable<ComputeAnswer> TaskServer::ask(net::TaskId other, Nodes nodes) {
  net::NameLookup lookup;
  const net::Dialed dialed =
      co_await net::dial(context_, task_.cluster.address_of(other),
                         hello_of(task_, other, net::ChannelPurpose::kRequest), {},
                         task_.timeouts.heartbeat_timeout, lookup, task_.credentials.get());
  if (dialed.error == net::WireError::kRefused) {
    co_return dialed.refusal;
  }
  if (!dialed.connection) {
    co_return lost(other, dialed.error.message());
  }
  ComputeAnswer answer = co_await ask_on(dialed.connection, nodes);
  dialed.connection->close();
  co_return answer;
}

asio::awaitable<ComputeAnswer> TaskServer::ask_on(Connection connection, Nodes nodes) {
  connection->send(net::ComputeFrame{1}.to_header(), net::encode(nodes));
  // The other server computes first, so its header may take longer than the body behind it.
  FrameHeader header;
  std::error_code error = co_await connection->read_header(header, task_.timeouts.peer);
  std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
  if (!error && header.body_size == body.size()) {
    error = co_await connection->read_body(body, task_.timeouts.heartbeat_timeout);
  }
  net::ComputeResult result;
  net::Refusal refusal;
  if (!error && !net::ResultFrame{}.from_header(header) && !net::decode(body, result)) {
    co_return result;
  }
  if (!error && !net::RefusedFrame{}.from_header(header) && !net::decode(body, refusal)) {
    co_return refusal;
  }
  const net::TaskId& other = connection->hello().from;
  co_return lost(other, error ? error.message() : "its answer is malformed");
}

ComputeAnswer TaskServer::lost(const net::TaskId& other, const std::string& why) const {
  return net::Refusal{
      .exit_code = static_cast<std::uint8_t>(kLostPeers),
      .sentence = self_text() + " cannot reach " + describe(task_.cluster, other) + ": " + why};
}

// Runs the server's task of a run, until it ends or the channel breaks. nullopt: it is started.
std::optional<net::Refusal> TaskServer::train(ServerConnectionId id, const Connection& connection,
                                              const net::RunTaskRequest& request) {
  // With certificates, only the chief's may drive.
  if (!connection->may_drive()) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(kUsage),
                        .sentence = self_text() +
                                    " trains only for the chief, but the certificate of " +
                                    connection->peer_text() + " is another task's"};
  }
  auto refusal = controller_.requested(id, connection->peer_text(), net::Clock::now());
  if (!refusal) {
    // Before act(), which starts the task with it.
    run_task_request_ = request;
    act();
    // act() has tried to start the task, and left a refusal if it failed.
    refusal = std::exchange(cannot_start_, {});
  }
  return refusal;
}

asio::awaitable<void> TaskServer::watch_child() {
  const net::TaskEnd end = co_await child_.ended();
  controller_.task_ended(end);
  act();
}

asio::awaitable<void> TaskServer::end_after(Connection last) {
  // The limit keeps a driver that does not read from holding up a stopped server.
  co_await last->drained(task_.timeouts.heartbeat_timeout);
  context_.stop();
}

// ------------------------------------------------------------------------------------ effects

void TaskServer::act() {
  controller_.effects().drain([this](const auto& request) { carry_out(request); });
  call_at(timer_, controller_.deadline(), [this] {
    controller_.time(net::Clock::now());
    act();
  });
}

void TaskServer::carry_out(const OpenServerPort& /*request*/) {
  net::ListenerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return controller_.welcome(hello); };
  hooks.on_connection = [this](Connection connection) { return serve(std::move(connection)); };
  // A failing connection must not end the server.
  hooks.on_error = log_exception;
  Task task = task_;
  // The listener closes its descriptor; the original stays open for the next task.
  task.listen_fd = fcntl(port_.number(), F_DUPFD_CLOEXEC, 0);
  if (task.listen_fd < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot listen again");
  }
  listener_ = open_task_listener(context_, task, std::move(hooks), *stop_, true);
  log_info("Waiting for requests");
}

void TaskServer::carry_out(const StartRequestedTask& /*request*/) {
  try {
    child_.start(run_task_request_, port_.number());
  } catch (const std::exception& error) {
    cannot_start_ = controller_.could_not_start(error.what());
    return;
  }
  spawn(watch_child());
}

void TaskServer::carry_out(const SendToDriver& request) {
  if (const auto to = connections_.find(request.to); to != connections_.end()) {
    to->second->send(request.header, request.body);
  }
}

void TaskServer::carry_out(const ServerLine& request) {
  if (request.is_warning) {
    log_warning(request.text);
  } else {
    log_info(request.text);
  }
}

void TaskServer::carry_out(const EndServer& request) {
  // The driver must receive the task's end before this process closes its connections.
  if (const auto last = connections_.find(request.last); last != connections_.end()) {
    spawn(end_after(last->second));
  } else {
    context_.stop();
  }
}

void TaskServer::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), log_exception);
}

}  // namespace

int run_task_server(const TaskServerOptions& options) { return TaskServer(options).run(); }

}  // namespace disttf::roles
