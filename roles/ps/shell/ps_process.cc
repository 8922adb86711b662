#include "roles/ps/shell/ps_process.h"

#include <algorithm>
#include <new>
#include <utility>

#include "net/tcp/drain_all.h"
#include "net/tcp/spawn.h"
#include "net/wire/metrics_messages.h"
#include "run/monitor/shell/process_facts.h"

namespace disttf::roles {

ParameterServer::ParameterServer(const Task& task, std::size_t threads, PsIo& io)
    : task_(task),
      io_(io),
      core_(
          task_, threads,
          [this](std::uint8_t replica, const RunConfig& config, math::Range range_of_run) {
            return range(replica).make_arena(config, range_of_run);
          },
          io.now()) {}

void ParameterServer::start() {
  spawn([this] { return watch(); });
}

void ParameterServer::stop(ExitCode code, const std::string& signal) {
  core_.stop(code, signal, io_.now());
  do_effects();
}

bool ParameterServer::copy_snapshots() {
  return std::ranges::any_of(ranges_, [](const auto& each) { return each->copy_snapshot(); });
}

bool ParameterServer::poll() noexcept {
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

std::variant<net::Welcome, net::Refusal> ParameterServer::welcome(const net::Hello& hello) {
  auto answer = core_.welcome(hello, io_.now());
  do_effects();
  return answer;
}

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

net::FrameConnection* ParameterServer::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

asio::awaitable<void> ParameterServer::serve(ConnectionPtr connection) {
  const ConnectionId id = add(connection);
  const net::Hello& hello = connection->hello();
  const PsCore::Reads reads = core_.connected(id, hello, connection->peer_text(), io_.now());
  // Before any frame is read: the core may have closed this connection or others.
  do_effects();
  if (reads == PsCore::Reads::kFrames) {
    co_await range(hello.replica).serve_accepted(id, connection);
  } else if (reads == PsCore::Reads::kSnapshots) {
    co_await range(hello.replica).serve_snapshots(connection);
  }
  // The core has registered only connections that it reads from.
  if (reads != PsCore::Reads::kNothing) {
    core_.closed(id, io_.now());
    do_effects();
  }
  remove(id);
}

// ------------------------------------------------------------------------------------------ time

asio::awaitable<void> ParameterServer::watch() {
  net::FreezeWatch awake(io_.now());
  const std::unique_ptr<Alarm> round = io_.make_alarm();
  const auto forgive = [&](Clock::duration missed) {
    core_.forgive(missed, awake.now());
    do_effects();
  };
  while (!core_.has_ended()) {
    const Clock::time_point now = io_.now();
    const Clock::time_point next = now + kWatchInterval;
    // Before the wait, too: this process may have been suspended since the last round.
    forgive(awake.missed(now, next));
    co_await round->wait_until(next);
    forgive(awake.missed(io_.now()));
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
  if (net::FrameConnection* const connection = find(effect.id)) {
    connection->refuse({.exit_code = effect.exit_code,
                        .sentence = std::move(effect.sentence),
                        .replaced_by = effect.replaced_by},
                       effect.request_id);
  }
}

void ParameterServer::apply(const CloseConnection& effect) {
  if (net::FrameConnection* const connection = find(effect.id)) {
    connection->close();
  }
}

void ParameterServer::apply(const ClosePort& /*effect*/) { io_.close_port(); }

void ParameterServer::apply(const AwaitDrained& effect) {
  // Time for peers to read what they were sent, then for the last frames to leave.
  // Spawned, since the ps serves its connections meanwhile.
  spawn([this, at_least = effect.at_least]() -> asio::awaitable<void> {
    const std::unique_ptr<Alarm> pause = io_.make_alarm();
    co_await pause->wait_until(io_.now() + at_least);
    co_await net::drain_all(last_, kDrainTimeout, [this] { return io_.now(); });
    core_.drained();
    do_effects();
  });
}

void ParameterServer::apply(const StayIdle& /*effect*/) { io_.stay_idle(); }

void ParameterServer::apply(const AnswerMetrics& effect) {
  net::FrameConnection* const connection = find(effect.to);
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
  if (net::FrameConnection* const connection = find(effect.to)) {
    connection->send(
        net::TraceSteps{.from = effect.window.from, .count = effect.window.count}.to_header());
  }
}

void ParameterServer::apply(const EndProcess& effect) { io_.end(effect); }

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
  net::spawn(io_.context(), std::move(coroutine),
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

}  // namespace disttf::roles
