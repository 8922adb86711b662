#include "roles/servers/driver.h"

#include <poll.h>

#include <algorithm>
#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/transport/as_tuple.h"
#include "net/transport/dial.h"
#include "net/transport/interrupt.h"
#include "net/transport/server.h"
#include "net/transport/spawn.h"
#include "net/wire/backoff.h"
#include "net/wire/run_order.h"
#include "roles/chief/shell/chief.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/process/start_thread.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using net::Clock;
using net::FrameHeader;
using net::FrameKind;

// A server that comes back is to be reached soon: trainers wait for it.
constexpr std::chrono::milliseconds kLongestServerPause{250};
// After the run's end the tasks are gone within 2 s; a multiple of it for a busy machine.
constexpr std::chrono::seconds kFinishGrace{10};

net::OrderedData ordered_data(DatasetChoice choice) {
  switch (choice) {
    case DatasetChoice::kAuto:
      return net::OrderedData::kAuto;
    case DatasetChoice::kMnist:
      return net::OrderedData::kMnist;
    case DatasetChoice::kDigits:
      return net::OrderedData::kDigits;
  }
  return net::OrderedData::kAuto;
}

struct Server {
  std::size_t number = 0;  // its place in servers_, and the policy's name for its task
  net::TaskId task;
  std::string name;                                        // "ps 0 (10.0.0.7:2222)"
  std::shared_ptr<net::ServerConnection> connection = {};  // null: not reached
  net::NameLookup lookup = {};                             // of its name
  std::string why = {};                                    // the last attempt failed
  bool was_ordered = false;                                // by this driver, in this run
  bool is_done = false;                                    // its task is over
};

// Whether who refuses is the task of an order that this driver gave before: of a server that was
// frozen, and ends it as soon as it sees that the channel of that order is gone. If it is another
// driver's, it stays so, and the time to wait for the server runs out.
bool is_own_task(const Server& server, const net::Refusal& refusal) {
  return server.was_ordered && refusal.exit_code == kLostPeers;
}

// The servers of one run.
class Crew {
 public:
  // `listed`: the lists as the servers know them. The references must outlive it.
  Crew(const Task& chief, net::Cluster listed, net::OrderedData data, StopSignal& stop);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // For the thread that leads the run. Waits until all servers are there; they are then ordered.
  void gather();
  // Waits until all tasks are over, for a while.
  void finish();

 private:
  // On the crew's thread.
  asio::awaitable<void> tend(Server& server);
  asio::awaitable<bool> reach(Server& server, std::chrono::seconds limit);
  asio::awaitable<bool> await_all();
  asio::awaitable<Ending> run_task(Server& server, std::string& last_line);
  asio::awaitable<std::error_code> hear_end(Server& server, net::TaskEnd& end);
  asio::awaitable<bool> goes_on(Server& server, const Ending& ending, const std::string& last_line);
  asio::awaitable<void> beat();
  void done(Server& server);
  void fail(int exit_code, const std::string& sentence);
  void spawn(asio::awaitable<void> work);

  const Task& chief_;
  const net::Cluster listed_;
  const net::RunOrder order_;
  StopSignal& stop_;
  net::Interrupt all_there_;  // each is set once
  net::Interrupt all_done_;
  // The thread owns everything below.
  asio::io_context context_{1};
  asio::steady_timer barrier_;  // ends when nobody is awaited any more
  std::size_t awaited_ = 0;
  std::vector<Server> servers_;  // in the policy's order
  std::unique_ptr<RestartPolicy> policy_;
  std::thread thread_;
};

Crew::Crew(const Task& chief, net::Cluster listed, net::OrderedData data, StopSignal& stop)
    : chief_(chief),
      listed_(std::move(listed)),
      order_{.start = chief.timeouts.start,
             .peer = chief.timeouts.peer,
             .worker = chief.timeouts.worker,
             .silence = chief.timeouts.silence,
             .data = data},
      stop_(stop),
      barrier_(context_, Clock::time_point::max()) {
  std::vector<RestartPolicy::Part> parts;
  for (const net::Job job : {net::Job::kPs, net::Job::kWorker}) {
    for (std::size_t index = 0; index < listed_.tasks_of(job).size(); ++index) {
      const net::TaskId task{.job = job, .index = index};
      servers_.push_back(
          {.number = servers_.size(), .task = task, .name = describe(listed_, task)});
      parts.push_back(job == net::Job::kPs ? RestartPolicy::Part::kPs
                                           : RestartPolicy::Part::kWorker);
    }
  }
  policy_ = std::make_unique<RestartPolicy>(RestartOptions{}, parts,
                                            std::mt19937_64(std::random_device{}()));
  awaited_ = servers_.size();
  for (Server& server : servers_) {  // stays where it is from now on
    spawn(tend(server));
  }
  spawn(beat());
  thread_ = start_thread(stop_, [this] { context_.run(); });
}

// The channels close, and with them end tasks that are not over.
Crew::~Crew() {
  asio::post(context_, [this] { context_.stop(); });
  thread_.join();
}

void Crew::gather() {
  // Who comes late is told by the crew's thread.
  static_cast<void>(
      net::wait_for(all_there_.fd(), POLLIN, stop_.interrupt(), net::Deadline::max()));
  stop_.throw_if_stopped();
}

void Crew::finish() {
  if (net::wait_for(all_done_.fd(), POLLIN, stop_.interrupt(), Clock::now() + kFinishGrace)) {
    log_warning("not all servers have said that their task is over; leaving them");
  }
}

// One server, for as long as the run lasts.
asio::awaitable<void> Crew::tend(Server& server) {
  co_await reach(server, chief_.timeouts.start);
  if (!co_await await_all()) {
    co_return;
  }
  while (true) {
    if (!server.connection && !co_await reach(server, chief_.timeouts.peer)) {
      fail(kLostPeers, server.name + " has been gone for " + seconds_text(chief_.timeouts.peer) +
                           ": " + server.why);
      co_return;
    }
    std::string last_line;
    const Ending ending = co_await run_task(server, last_line);
    if (!co_await goes_on(server, ending, last_line)) {
      co_return;
    }
  }
}

asio::awaitable<bool> Crew::reach(Server& server, std::chrono::seconds limit) {
  net::FreezeWatch awake;
  auto deadline = awake.now() + limit;
  net::Backoff backoff(std::mt19937_64(std::random_device{}()));
  asio::steady_timer pause(context_);
  bool is_told = false;
  while (true) {
    deadline += awake.missed(Clock::now(), Clock::now() + chief_.timeouts.silence);
    net::Dialed dialed = co_await net::dial(context_, listed_.address_of(server.task),
                                            {.cluster = net::hash_of(listed_),
                                             .from = {.job = net::Job::kEvaluator, .index = 0},
                                             .to = server.task,
                                             .purpose = net::ChannelPurpose::kOrder,
                                             .incarnation = chief_.incarnation},
                                            {}, chief_.timeouts.silence, server.lookup);
    deadline += awake.missed(Clock::now());
    const bool is_refused = dialed.error == net::WireError::kRefused;
    throw_if_out_of_descriptors(dialed.error, "connect to " + server.name);
    server.connection = std::move(dialed.connection);
    server.why = is_refused     ? "it says: " + dialed.refusal.sentence
                 : dialed.error ? dialed.error.message()
                                : "";
    if (is_refused && !is_own_task(server, dialed.refusal)) {
      fail(dialed.refusal.exit_code, server.name + " says: " + dialed.refusal.sentence);
    } else if (is_refused && !std::exchange(is_told, true)) {
      log_info(server.name + " is still at work, for this driver's last order; asking again");
    }
    deadline += awake.missed(Clock::now());
    const auto next = awake.now() + std::min<Clock::duration>(backoff.next(), kLongestServerPause);
    if (server.connection || next >= deadline) {
      co_return server.connection != nullptr;
    }
    pause.expires_at(next);
    deadline += awake.missed(Clock::now(), next);
    co_await pause.async_wait(net::kAsTuple);
  }
}

// False: some are not there.
asio::awaitable<bool> Crew::await_all() {
  if (--awaited_ > 0) {
    co_await barrier_.async_wait(net::kAsTuple);
  } else {
    barrier_.cancel();
  }
  std::string missing;
  for (const Server& server : servers_) {
    if (!server.connection) {
      missing += (missing.empty() ? "" : "; ") + server.name + ": " + server.why;
    }
  }
  if (!missing.empty()) {
    fail(kLostPeers, "not there after " + seconds_text(chief_.timeouts.start) + ": " + missing);
    co_return false;
  }
  all_there_.interrupt();
  co_return true;
}

// `last_line`: of the task's log, where it has failed.
asio::awaitable<Ending> Crew::run_task(Server& server, std::string& last_line) {
  policy_->started(server.number, Clock::now());
  server.connection->send({.kind = FrameKind::kRunTask}, net::encode(order_));
  server.was_ordered = true;
  net::TaskEnd end;
  const std::error_code error = co_await hear_end(server, end);
  if (error) {
    server.connection->close();
    server.connection.reset();
    server.why = last_line = error.message();
    co_return Ending{.lost = true};
  }
  last_line = end.last_line;
  co_return Ending{.exit_code = end.exit_code, .signal = end.signal};
}

asio::awaitable<std::error_code> Crew::hear_end(Server& server, net::TaskEnd& end) {
  const std::shared_ptr<net::ServerConnection> connection = server.connection;
  FrameHeader header;
  while (true) {
    if (const auto error = co_await connection->read_header(header, chief_.timeouts.silence)) {
      co_return error;
    }
    std::vector<std::byte> body(std::min(header.body_size, net::kMaxControlBodyBytes));
    if (header.body_size != body.size()) {
      co_return net::WireError::kBodyTooLarge;
    }
    if (const auto error = co_await connection->read_body(body, chief_.timeouts.silence)) {
      co_return error;
    }
    net::Refusal refusal;
    if (header.kind == FrameKind::kTaskEnded) {
      co_return net::decode(body, end);
    }
    if (header.kind == FrameKind::kRefused && !net::decode(body, refusal)) {
      fail(refusal.exit_code, server.name + " says: " + refusal.sentence);
      co_return net::WireError::kRefused;
    }
    if (header.kind != FrameKind::kHeartbeat) {
      co_return net::WireError::kUnexpected;
    }
  }
}

// True: its task is to be started again, and it is time to.
asio::awaitable<bool> Crew::goes_on(Server& server, const Ending& ending,
                                    const std::string& last_line) {
  const RestartPolicy::Decision decision = policy_->ended(server.number, ending, Clock::now());
  const std::string sentence =
      server.name + " " + decision.sentence + (last_line.empty() ? "" : ": " + last_line);
  switch (decision.action) {
    case RestartPolicy::Action::kLeave:
      if (!decision.sentence.empty()) {
        log_warning(sentence);
      }
      done(server);
      co_return false;
    case RestartPolicy::Action::kStop:
      fail(*policy_->exit_code(), sentence);
      co_return false;
    case RestartPolicy::Action::kRestart:
      break;
  }
  log_warning(sentence);
  asio::steady_timer pause(context_, decision.delay);
  co_await pause.async_wait(net::kAsTuple);
  co_return true;
}

// Its server may wait for orders.
void Crew::done(Server& server) {
  server.is_done = true;
  if (server.connection) {
    server.connection->close();
    server.connection.reset();
  }
  if (std::all_of(servers_.begin(), servers_.end(),
                  [](const Server& each) { return each.is_done; })) {
    all_done_.interrupt();
  }
}

asio::awaitable<void> Crew::beat() {
  asio::steady_timer timer(context_);
  while (true) {
    for (const Server& server : servers_) {
      if (server.connection) {
        server.connection->send({.kind = FrameKind::kHeartbeat});
      }
    }
    timer.expires_after(kHeartbeatInterval);
    co_await timer.async_wait(net::kAsTuple);
  }
}

void Crew::fail(int exit_code, const std::string& sentence) {
  policy_->stop(exit_code);
  stop_.stop_with(Failure(exit_code, sentence));
}

void Crew::spawn(asio::awaitable<void> work) {
  net::spawn(context_, std::move(work), [this](const std::exception_ptr& exception) {
    policy_->stop(kError);
    stop_.stop_with(exception);
  });
}

// A port that nobody needs to reach: every trainer has one.
int open_any_port() {
  asio::io_context context;
  return net::listen_on(context, 0).release();
}

}  // namespace

int run_driver(TrainerOptions options) {
  Task& task = options.task;
  task.self = {.job = net::Job::kChief, .index = 0};
  const net::Cluster listed = task.cluster;
  task.cluster = net::driven(listed);
  net::validate(task.cluster, task.self);
  task.listen_fd = open_any_port();
  StopSignal stop;
  Crew crew(task, listed, ordered_data(options.data.dataset), stop);
  crew.gather();
  lead(options, stop);
  crew.finish();
  return kDone;
}

}  // namespace disttf::roles
