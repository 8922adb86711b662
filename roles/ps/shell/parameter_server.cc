#include "roles/ps/shell/parameter_server.h"

#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <new>
#include <utility>

#include "net/tcp/drain_all.h"
#include "net/tcp/spawn.h"
#include "net/wire/metrics_messages.h"
#include "roles/ps/shell/ps_process.h"
#include "run/monitor/shell/process_facts.h"
#include "run/process/machine.h"
#include "run/process/stop_signal.h"
#include "run/process/task_listener.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// The most handlers that run between two polls of shared memory.
constexpr std::size_t kHandlersPerLook = 16;

}  // namespace

ParameterServer::ParameterServer(Task task, std::filesystem::path train_dir)
    : task_(std::move(task)),
      train_dir_(std::move(train_dir)),
      core_(
          task_, threads_of(task_),
          [this](std::uint8_t replica, const RunConfig& config, math::Range range_of_run) {
            return range(replica).make_arena(config, range_of_run);
          },
          Clock::now()),
      watch_timer_(context_) {}

int ParameterServer::run() {
  const StopSignal stop([this](int number) {
    asio::post(context_, [this, number] {
      // Posted to the ps's thread: StopSignal calls this on a thread of its own.
      core_.stop(static_cast<ExitCode>(exit_code_for(number)), signal_name(number), Clock::now());
      do_effects();
    });
  });
  net::ListenerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) {
    auto answer = core_.welcome(hello, Clock::now());
    do_effects();
    return answer;
  };
  hooks.on_connection = [this](ConnectionPtr connection) { return serve(std::move(connection)); };
  hooks.on_error = [this](const std::exception_ptr& exception) { on_exception(exception); };
  // Opened last: from here on a peer may connect, and every hook must be set by then.
  listener_ = open_task_listener(context_, task_, std::move(hooks), stop);
  spawn([this] { return watch(); });
  loop();
  // Once more, so that the counters include the end of the run.
  publish_meters();
  if (end_.code != kDone) {
    throw Failure(end_.code, end_.sentence);
  }
  return kDone;
}

// When all gradients of a step but one have arrived, the last one is about to. Busy-polling for it
// saves the step a wake-up. It also keeps the kernel from waking this process on the pushing
// trainer's processor, where that trainer could load its next batch. When a step has been made and
// the other host of the range does not have it yet, all trainers wait, and processors are free.
// (With more tasks than processors polling may take a processor from a trainer that computes; it
// yields, and net::SpinThenPark notices when that takes long.)
void ParameterServer::loop() {
  const auto proceeds = [this] { return proceed(); };
  set_parked(false);
  while (!context_.stopped()) {
    // Snapshots are copied only when no frame waits, and before the ps spins or sleeps.
    const bool has_come = proceed() || copy_snapshots() ||
                          (core_.expects_gradient() && for_gradients_.spin(proceeds)) ||
                          (core_.expects_ack() && for_acks_.spin(proceeds));
    if (!has_come) {
      sleep();
    }
  }
}

bool ParameterServer::proceed() {
  // Memory first: a push there is what trainers wait for.
  static_cast<void>(is_ready());
  std::size_t handlers = 0;
  // Bounded, so that a stream of small frames cannot starve requests in memory.
  while (handlers < kHandlersPerLook && context_.poll_one() > 0) {
    ++handlers;
  }
  return handlers > 0 || context_.stopped();
}

bool ParameterServer::copy_snapshots() {
  return std::ranges::any_of(ranges_, [](const auto& each) { return each->copy_snapshot(); });
}

// Before it sleeps it yields once. Trainers that share its processor and are about to push then
// find it awake, which saves frames and wake-ups. It helps even with more tasks than processors.
// Trainers send a frame to a ps that sleeps.
void ParameterServer::sleep() {
  if (!for_anything_.yield_once([this] { return proceed(); })) {
    net::SpinThenPark::park(*this, [this] { context_.run_one(); });
  }
}

bool ParameterServer::is_ready() noexcept {
  // Every range is polled, whatever the first one has: each poll wakes a reader of its own.
  bool wakes = false;
  for (const auto& each : ranges_) {
    wakes = each->poll() || wakes;
  }
  return wakes;
}

void ParameterServer::set_parked(bool parked) noexcept {
  for (const auto& each : ranges_) {
    each->set_parked(parked);
  }
}

// ---------------------------------------------------------------------------------- connections

RangeServer& ParameterServer::range(std::size_t replica) {
  while (ranges_.size() <= replica) {
    ranges_.push_back(std::make_unique<RangeServer>(*this, core_.range(ranges_.size())));
  }
  return *ranges_[replica];
}

ConnectionId ParameterServer::add(const ConnectionPtr& connection) {
  // Ids are never used again, so an effect for a closed connection finds none.
  connections_.emplace(++last_id_, connection);
  return last_id_;
}

net::ServerConnection* ParameterServer::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

asio::awaitable<void> ParameterServer::serve(ConnectionPtr connection) {
  const ConnectionId id = add(connection);
  const net::Hello& hello = connection->hello();
  const PsCore::Reads reads = core_.connected(id, hello, connection->peer_text(), Clock::now());
  // Before any frame is read: the core may have closed this connection or others.
  do_effects();
  if (reads == PsCore::Reads::kFrames) {
    co_await range(hello.replica).serve_accepted(id, connection);
  } else if (reads == PsCore::Reads::kSnapshots) {
    co_await range(hello.replica).serve_snapshots(connection);
  }
  // The core has registered only connections that it reads from.
  if (reads != PsCore::Reads::kNothing) {
    core_.closed(id, Clock::now());
    do_effects();
  }
  remove(id);
}

// ------------------------------------------------------------------------------------------ time

asio::awaitable<void> ParameterServer::watch() {
  net::FreezeWatch awake;
  const auto forgive = [&](Clock::duration missed) {
    core_.forgive(missed, awake.now());
    do_effects();
  };
  while (!core_.has_ended()) {
    watch_timer_.expires_after(kWatchInterval);
    // Before the wait, too: this process may have been suspended since the last round.
    forgive(awake.missed(Clock::now(), watch_timer_.expiry()));
    co_await watch_timer_.async_wait(asio::use_awaitable);
    forgive(awake.missed(Clock::now()));
    core_.time(awake.now());
    do_effects();
    publish_meters();
  }
}

void ParameterServer::publish_meters() {
  for (const auto& served : ranges_) {
    served->meter().publish();
  }
}

// --------------------------------------------------------------------------------------- effects

void ParameterServer::do_effects() {
  core_.drain([this](std::size_t replica, auto& effect) { range(replica).apply(effect); },
              [this](auto& effect) { apply(effect); });
}

void ParameterServer::apply(RefuseConnection& effect) {
  if (net::ServerConnection* const connection = find(effect.id)) {
    connection->refuse({.exit_code = effect.exit_code,
                        .sentence = std::move(effect.sentence),
                        .replaced_by = effect.replaced_by},
                       effect.request_id);
  }
}

void ParameterServer::apply(const CloseConnection& effect) {
  if (net::ServerConnection* const connection = find(effect.id)) {
    connection->close();
  }
}

void ParameterServer::apply(const ClosePort& /*effect*/) {
  if (listener_) {
    listener_->stop();
  }
}

void ParameterServer::apply(const AwaitDrained& effect) {
  // Time for peers to read what they were sent, then for the last frames to leave.
  // Spawned, since the ps serves its connections meanwhile.
  spawn([this, at_least = effect.at_least]() -> asio::awaitable<void> {
    asio::steady_timer timer(context_, at_least);
    co_await timer.async_wait(asio::use_awaitable);
    co_await net::drain_all(last_, kDrainTimeout);
    core_.drained();
    do_effects();
  });
}

void ParameterServer::apply(const StayIdle& /*effect*/) { log_idle(); }

void ParameterServer::apply(const AnswerMetrics& effect) {
  net::ServerConnection* const connection = find(effect.to);
  if (connection == nullptr) {
    return;
  }
  PsMetrics own = core_.take_metrics();
  own.process = process_facts();
  for (const auto& served : ranges_) {
    own.process.bytes_sent += served->meter().bytes_sent();
    own.process.bytes_received += served->meter().bytes_received();
  }
  std::vector<std::string> texts = core_.relay().take();
  texts.insert(texts.begin(), to_json(own));
  connection->send(net::MetricsReplyFrame{effect.request_id}.to_header(),
                   net::encode_metrics(texts));
}

void ParameterServer::apply(const SendTrace& effect) {
  if (net::ServerConnection* const connection = find(effect.to)) {
    connection->send(
        net::TraceSteps{.from = effect.window.from, .count = effect.window.count}.to_header());
  }
}

void ParameterServer::apply(EndProcess& effect) {
  end_ = std::move(effect);
  context_.stop();
}

void ParameterServer::drain_at_end(const std::vector<ConnectionId>& ids) {
  for (const ConnectionId id : ids) {
    if (const auto found = connections_.find(id); found != connections_.end()) {
      // Shared ownership: the connection must live until it is drained.
      last_.push_back(found->second);
    }
  }
}

// An exception of any coroutine ends the process with a sentence.
void ParameterServer::spawn(std::function<asio::awaitable<void>()> coroutine) {
  net::spawn(context_, std::move(coroutine),
             [this](const std::exception_ptr& exception) { on_exception(exception); });
}

void ParameterServer::on_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
    // Out of memory has a sentence of its own, as what() of std::bad_alloc says nothing.
  } catch (const std::bad_alloc&) {
    core_.broke(kNoMemory);
  } catch (const std::exception& error) {
    core_.broke(error.what());
  }
  do_effects();
}

int run_parameter_server(const Task& task, const std::filesystem::path& train_dir) {
  return ParameterServer(task, train_dir).run();
}

}  // namespace disttf::roles
