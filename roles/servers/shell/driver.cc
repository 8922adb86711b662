#include "roles/servers/shell/driver.h"

#include <poll.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/tcp/dial.h"
#include "net/tcp/sockets.h"
#include "net/tcp/spawn.h"
#include "net/waiting/as_tuple.h"
#include "net/waiting/interrupt.h"
#include "net/wire/messages.h"
#include "net/wire/server_requests.h"
#include "roles/chief/shell/chief.h"
#include "roles/servers/core/server_pool.h"
#include "run/outcome.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/start_thread.h"
#include "run/task.h"

namespace disttf::roles {
namespace {

using net::Clock;
using net::FrameHeader;
using net::FrameKind;

// The connections to the run's servers, on a thread of their own.
class ServerPoolThread {
 public:
  // `listed`: the lists of the servers. The references must outlive it.
  ServerPoolThread(const Task& chief, net::Cluster listed, std::uint8_t data, StopSignal& stop);
  ~ServerPoolThread();
  ServerPoolThread(const ServerPoolThread&) = delete;
  ServerPoolThread& operator=(const ServerPoolThread&) = delete;

  // Called by the thread that leads the run. Waits until all servers are connected; their tasks are
  // then requested.
  void gather();
  // Waits until all tasks have ended, at most for `grace`.
  void finish(std::chrono::seconds grace);

 private:
  // Called on the pool's thread.
  asio::awaitable<void> keep_time();
  asio::awaitable<void> dial(std::size_t server);
  asio::awaitable<void> receive_end(std::size_t server);
  asio::awaitable<std::error_code> read_end(std::shared_ptr<net::ServerConnection> connection,
                                            net::TaskEnd& end, net::Refusal& refusal);
  void see_time();
  void act();
  void carry_out(const DialServer& effect);
  void carry_out(const RequestTask& effect);
  void carry_out(const BeatServer& effect);
  void carry_out(const LeaveServer& effect);
  static void carry_out(const Note& effect) { log_note(effect); }
  void carry_out(const PoolReady& /*effect*/) { all_there_.interrupt(); }
  void carry_out(const PoolDone& /*effect*/) { all_done_.interrupt(); }
  void carry_out(const FailRun& effect) {
    stop_.stop_with(Failure(effect.exit_code, effect.sentence));
  }
  void spawn(asio::awaitable<void> work);

  const Task& chief_;
  const net::Cluster listed_;
  const net::RunTaskRequest run_task_request_;
  StopSignal& stop_;
  net::Interrupt all_there_;  // each is set once
  net::Interrupt all_done_;
  // The thread owns everything below.
  asio::io_context context_{1};
  asio::steady_timer timer_;
  net::FreezeWatch awake_;
  ServerPool server_pool_;
  std::map<std::size_t, net::NameLookup> lookups_;
  std::map<std::size_t, std::shared_ptr<net::ServerConnection>> connections_;  // open ones
  std::thread thread_;
};

ServerPoolThread::ServerPoolThread(const Task& chief, net::Cluster listed, std::uint8_t data,
                                   StopSignal& stop)
    : chief_(chief),
      listed_(std::move(listed)),
      run_task_request_{.start = chief.timeouts.start,
                        .peer = chief.timeouts.peer,
                        .worker = chief.timeouts.worker,
                        .heartbeat_timeout = chief.timeouts.heartbeat_timeout,
                        .data = data},
      stop_(stop),
      timer_(context_),
      server_pool_(listed_, chief.timeouts, random_number(), Clock::now()) {
  // Before the thread starts, so the effects of the constructor need no lock.
  act();
  spawn(keep_time());
  thread_ = start_thread(stop_, [this] { context_.run(); });
}

// Closes the channels, which ends tasks that still run.
ServerPoolThread::~ServerPoolThread() {
  asio::post(context_, [this] { context_.stop(); });
  thread_.join();
}

void ServerPoolThread::gather() {
  // The pool's thread reports missing servers.
  static_cast<void>(
      net::wait_for(all_there_.fd(), POLLIN, stop_.interrupt(), net::Deadline::max()));
  stop_.throw_if_stopped();
}

void ServerPoolThread::finish(std::chrono::seconds grace) {
  if (net::wait_for(all_done_.fd(), POLLIN, stop_.interrupt(), Clock::now() + grace)) {
    log_warning("not all servers have reported the end of their task; disconnecting");
  }
}

asio::awaitable<void> ServerPoolThread::keep_time() {
  while (true) {
    const auto deadline = server_pool_.deadline();
    timer_.expires_at(deadline);
    server_pool_.forgive(awake_.missed(Clock::now(), deadline));
    co_await timer_.async_wait(net::kAsTuple);
    see_time();
    server_pool_.time(awake_.now());
    if (!server_pool_.effects().effects().empty()) {
      act();
    }
  }
}

// Called before decisions by time, so that this process's own pauses count toward no timeout.
void ServerPoolThread::see_time() {
  server_pool_.forgive(awake_.missed(Clock::now(), server_pool_.deadline()));
}

asio::awaitable<void> ServerPoolThread::dial(std::size_t server) {
  net::Dialed dialed = co_await net::dial(
      context_, listed_.address_of(server_pool_.task_of(server)),
      {.cluster = net::hash_of(listed_),
       .from = {.job = net::Job::kEvaluator, .index = 0},
       .to = server_pool_.task_of(server),
       .purpose = net::ChannelPurpose::kRequest,
       .incarnation = chief_.incarnation},
      {}, chief_.timeouts.heartbeat_timeout, lookups_[server], chief_.credentials.get());
  throw_if_out_of_descriptors(dialed.error, "connect to " + server_pool_.name_of(server));
  see_time();
  DialOutcome outcome = ServerReached{};
  if (dialed.error == net::WireError::kRefused) {
    outcome = ServerRefused{dialed.refusal};
  } else if (!dialed.connection) {
    outcome = ServerUnreachable{dialed.error.message()};
  } else {
    connections_[server] = std::move(dialed.connection);
  }
  server_pool_.dialed(server, outcome, awake_.now());
  act();
}

asio::awaitable<void> ServerPoolThread::receive_end(std::size_t server) {
  net::TaskEnd end;
  net::Refusal refusal;
  const std::error_code error = co_await read_end(connections_.at(server), end, refusal);
  see_time();
  if (!error) {
    server_pool_.task_ended(server, end, awake_.now());
  } else if (error == net::WireError::kRefused) {
    server_pool_.refused(server, refusal, error.message(), awake_.now());
  } else {
    server_pool_.closed(server, error.message(), awake_.now());
  }
  act();
}

asio::awaitable<std::error_code> ServerPoolThread::read_end(
    std::shared_ptr<net::ServerConnection> connection, net::TaskEnd& end, net::Refusal& refusal) {
  FrameHeader header;
  while (true) {
    if (const auto error =
            co_await connection->read_header(header, chief_.timeouts.heartbeat_timeout)) {
      co_return error;
    }
    // The header is not trusted: allocates no more than a control frame may have.
    std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
    if (header.body_size != body.size()) {
      co_return net::WireError::kBodyTooLarge;
    }
    if (const auto error =
            co_await connection->read_body(body, chief_.timeouts.heartbeat_timeout)) {
      co_return error;
    }
    if (!net::TaskEndedFrame{}.from_header(header)) {
      co_return net::decode(body, end);
    }
    if (!net::RefusedFrame{}.from_header(header) && !net::decode(body, refusal)) {
      co_return net::WireError::kRefused;
    }
    // A heartbeat only restarts the timeout of read_header(); any other frame here is an error.
    if (net::Heartbeat{}.from_header(header)) {
      co_return net::WireError::kUnexpected;
    }
  }
}

// Carries out effects. To be called after each event.
void ServerPoolThread::act() {
  server_pool_.effects().drain([this](const auto& effect) { carry_out(effect); });
  timer_.cancel();  // the deadline may have changed
}

void ServerPoolThread::carry_out(const DialServer& effect) { spawn(dial(effect.server)); }

void ServerPoolThread::carry_out(const RequestTask& effect) {
  connections_.at(effect.server)
      ->send(net::RunTaskFrame{}.to_header(), net::encode(run_task_request_));
  spawn(receive_end(effect.server));
}

void ServerPoolThread::carry_out(const BeatServer& effect) {
  if (const auto found = connections_.find(effect.server); found != connections_.end()) {
    found->second->send(net::Heartbeat{}.to_header());
  }
}

void ServerPoolThread::carry_out(const LeaveServer& effect) {
  if (const auto found = connections_.find(effect.server); found != connections_.end()) {
    found->second->close();
    connections_.erase(found);
  }
}

void ServerPoolThread::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), [this](const std::exception_ptr& exception) {
    // An exception in a coroutine ends the run: no further decision of the pool would be reliable.
    server_pool_.give_up(kError);
    stop_.stop_with(exception);
  });
}

// Opens a port that no task needs to reach, because every trainer must have one.
int open_any_port() {
  asio::io_context context;
  return net::listen_on(context, 0, net::ListenScope::kLoopback).release();
}

}  // namespace

int run_driver(TrainerOptions options) {
  Task& task = options.task;
  task.self = {.job = net::Job::kChief, .index = 0};
  const net::Cluster listed = task.cluster;
  task.cluster = net::driven(listed);
  net::validate(task.cluster, task.self);
  // After validate(), so that an invalid cluster leaves no port open.
  task.listen_fd = open_any_port();
  StopSignal stop;
  const DatasetRow* const dataset = options.data.dataset;
  ServerPoolThread server_pool(task, listed, dataset == nullptr ? net::kAnyData : dataset->number,
                               stop);
  server_pool.gather();
  // The chief's part of the run, on this thread. An exception closes the channels, which stops the
  // tasks.
  const auto evaluation = lead(options, stop);
  server_pool.finish(finish_grace(evaluation));
  return kDone;
}

}  // namespace disttf::roles
