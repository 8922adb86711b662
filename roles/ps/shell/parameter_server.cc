#include "roles/ps/shell/parameter_server.h"

#include <sched.h>

#include <algorithm>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <new>
#include <thread>
#include <utility>

#include "net/transport/spawn.h"
#include "roles/process/finish.h"
#include "roles/process/log.h"
#include "roles/process/stop_signal.h"
#include "roles/process/task_listener.h"
#include "roles/ps/shell/ps_process.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// Whether a ps that is awake while a trainer computes takes no processor from it: all other
// trainers wait then.
bool may_stay_awake(const Task& task) {
  const std::string& host = task.cluster.address_of(task.self).host;
  const auto are_here = [&host](const std::vector<net::Address>& tasks) {
    return static_cast<std::size_t>(
        std::ranges::count_if(tasks, [&host](const auto& each) { return each.host == host; }));
  };
  const std::size_t ps = are_here(task.cluster.ps);
  const std::size_t trainers = are_here(task.cluster.workers) + are_here(task.cluster.chief);
  const std::size_t waiting = trainers > 1 ? 1 : 0;  // of them at least so many
  return ps + trainers <= std::thread::hardware_concurrency() + waiting;
}

// How often absences and silences are looked at: fine enough for timeouts given in seconds.
constexpr milliseconds kWatchInterval{100};

}  // namespace

int ParameterServer::run() {
  const StopSignal stop(
      [this](int number) { asio::post(context_, [this, number] { on_signal(number); }); });
  net::ServerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
  hooks.on_connection = [this](ConnectionPtr connection) { return serve(std::move(connection)); };
  hooks.on_error = [this](const std::exception_ptr& exception) { on_exception(exception); };
  listener_ = open_task_listener(context_, task_, std::move(hooks));
  spawn([this] { return watch(); });
  loop();
  if (failure_) {
    throw Failure(*failure_);
  }
  return kDone;
}

// When all gradients of a step but one have come, the last is about to. To be awake then spares the
// step a wake-up; and the kernel, which puts whom a trainer wakes on that trainer's processor,
// takes it away from no trainer that could load its next batch meanwhile.
void ParameterServer::loop() {
  const bool is_eager = may_stay_awake(task_);
  while (!context_.stopped()) {
    if (!is_eager || !expects_gradient() || !look()) {
      context_.run_one();
    }
  }
}

bool ParameterServer::expects_gradient() const noexcept {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->core().expects_gradient(); });
}

bool ParameterServer::look() {
  if (const auto until = eagerness_.begin()) {
    do {
      if (context_.poll() > 0 || context_.stopped()) {
        eagerness_.helped();
        return true;
      }
      ::sched_yield();
    } while (net::Clock::now() < *until);
    eagerness_.was_in_vain();
  }
  return false;
}

void ParameterServer::on_signal(int number) {
  if (ended_ || is_finishing()) {
    is_told_to_stop_ = true;  // after a finished run: on the way to 0, or there
    for (const auto& range : ranges_) {
      range->tell(&RangeReplica::end_now);
    }
    if (is_idle_) {
      context_.stop();
    }
    return;
  }
  const std::string why = std::string("stopped by ") + signal_name(number);
  const auto code = static_cast<ExitCode>(exit_code_for(number));
  if (number == SIGINT) {  // somebody's Ctrl-C is meant for the run
    fail(code, why + " before the run finished", self_text() + " was " + why);
  } else {  // an orchestrator moves this task: its trainers wait for the next one
    leave(code, why + " before the run finished");
  }
}

std::variant<net::Welcome, net::Refusal> ParameterServer::welcome(const net::Hello& hello) {
  if (hello.purpose == net::ChannelPurpose::kOrder) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = self_text() + " trains; only disttf server takes orders"};
  }
  if (hello.replica != 0 && task_.cluster.ps.size() < 2) {
    return net::Refusal{.exit_code = kUsage, .sentence = "one ps alone has no replicas"};
  }
  return range_of(hello).core().welcome(hello);
}

RangeServer& ParameterServer::range_of(const net::Hello& hello) {
  if (hello.replica == 1 && ranges_.size() == 1) {
    ranges_.push_back(std::make_unique<RangeServer>(*this, std::uint8_t{1}));
    ranges_.back()->trainers().learn_replaced(ranges_.front()->trainers());
    for (const TrainerRecord& record : ranges_.front()->trainers().records()) {
      if (const net::ServerConnection* const connection = find(record.control)) {
        ranges_.back()->tell(&RangeReplica::attach_control, record.control, connection->hello());
      }
    }
  }
  return *ranges_[hello.replica];
}

bool ParameterServer::is_finishing() const {
  return is_over() && std::ranges::all_of(ranges_, [](const auto& range) {
           const RangeReplica& core = range->core();
           return core.is_finishing() || core.is_unused() || core.is_backup();
         });
}

// What the chief has said of one range holds for all.
bool ParameterServer::is_over() const {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->core().is_finishing(); });
}

ConnectionId ParameterServer::add(const ConnectionPtr& connection) {
  connections_.emplace(++last_id_, connection);
  return last_id_;
}

net::ServerConnection* ParameterServer::find(ConnectionId id) const {
  const auto found = connections_.find(id);
  return found == connections_.end() ? nullptr : found->second.get();
}

asio::awaitable<void> ParameterServer::serve(ConnectionPtr connection) {
  const ConnectionId id = add(connection);
  if (connection->hello().purpose == net::ChannelPurpose::kControl) {
    co_await serve_control(id, connection);
  } else {
    co_await range_of(connection->hello()).serve(id, connection);
  }
  remove(id);
}

asio::awaitable<void> ParameterServer::serve_control(ConnectionId id, ConnectionPtr connection) {
  for (const auto& range : ranges_) {
    range->tell(&RangeReplica::attach_control, id, connection->hello());
  }
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, task_.timeouts.silence)) {
      break;
    }
    if (header.kind != FrameKind::kHeartbeat || header.body_size != 0) {
      const std::string sentence = "a control channel carries heartbeats only";
      log_warning("refused " + connection->peer_text() + ": " + sentence);
      connection->refuse({.exit_code = kError, .sentence = sentence}, header.request_id);
      break;
    }
    for (const auto& range : ranges_) {
      range->tell(&RangeReplica::hear, connection->hello(), header.generation);
    }
  }
  for (const auto& range : ranges_) {
    range->tell(&RangeReplica::detach_control, id, connection->hello());
  }
}

asio::awaitable<void> ParameterServer::watch() {
  net::FreezeWatch awake;
  const auto forgive = [&](Clock::duration missed) {
    if (missed == Clock::duration::zero()) {
      return;
    }
    for (const auto& range : ranges_) {
      range->tell_at(awake.now(), &RangeReplica::forgive, missed);
    }
  };
  while (!ended_) {
    watch_timer_.expires_after(kWatchInterval);
    forgive(awake.missed(Clock::now(), watch_timer_.expiry()));
    co_await watch_timer_.async_wait(asio::use_awaitable);
    forgive(awake.missed(Clock::now()));
    const auto now = awake.now();
    const bool beats = now >= next_heartbeat_;
    if (beats) {
      next_heartbeat_ = now + kHeartbeatInterval;
    }
    for (const auto& range : ranges_) {
      range->tell_at(now, &RangeReplica::close_silent);
      if (beats) {
        range->tell_at(now, &RangeReplica::send_heartbeats);
      }
      range->tell_at(now, &RangeReplica::check_end);
      if (verdict_ || range->core().is_finishing()) {
        continue;
      }
      if (const auto sentence = range->core().overdue(now)) {
        if (is_over()) {
          range->tell(&RangeReplica::end_now);
          continue;
        }
        fail(kLostPeers, *sentence, *sentence + " (says " + self_text() + ")");
      }
    }
  }
}

void ParameterServer::range_ended(const std::vector<ConnectionId>& last) {
  for (const ConnectionId id : last) {
    if (const auto found = connections_.find(id); found != connections_.end()) {
      last_.push_back(found->second);
    }
  }
  const auto has_ended = [](const auto& range) {
    return range->core().has_ended() || range->core().is_unused();
  };
  if (ended_ || !std::ranges::all_of(ranges_, has_ended)) {
    return;
  }
  ended_ = true;
  spawn([this]() -> asio::awaitable<void> {
    for (const ConnectionPtr& connection : last_) {
      co_await connection->drained(kDrainTimeout);
    }
    if (task_.on_finish == OnFinish::kIdle && !is_told_to_stop_) {
      is_idle_ = true;  // and welcomes whoever is started again: the run is over
      log_idle();
      co_return;
    }
    context_.stop();
  });
}

void ParameterServer::fail(ExitCode code, const std::string& own_sentence,
                           const std::string& peers_sentence) {
  if (verdict_) {
    return;
  }
  failure_.emplace(code, own_sentence);
  verdict_ =
      net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers), .sentence = peers_sentence};
  // Who comes now is to find the next process in this one's place, not the verdict of a run that it
  // had no part in.
  if (listener_) {
    listener_->stop();
  }
  for (const auto& range : ranges_) {
    range->refuse_all(*verdict_);
  }
  ended_ = true;
  // Peers get a moment to take the sentence; whoever is computing finds it at its next request,
  // or the closed port, and says so itself.
  spawn([this]() -> asio::awaitable<void> {
    asio::steady_timer timer(context_, kDrainTimeout);
    co_await timer.async_wait(asio::use_awaitable);
    context_.stop();
  });
}

void ParameterServer::leave(ExitCode code, const std::string& sentence) {
  if (ended_) {
    return;
  }
  failure_.emplace(code, sentence);
  ended_ = true;
  context_.stop();
}

void ParameterServer::spawn(std::function<asio::awaitable<void>()> coroutine) {
  net::spawn(context_, std::move(coroutine),
             [this](const std::exception_ptr& exception) { on_exception(exception); });
}

void ParameterServer::on_exception(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    fail(kError, kNoMemory, self_text() + " failed: " + kNoMemory);
  } catch (const std::exception& error) {
    fail(kError, error.what(), self_text() + " failed: " + error.what());
  }
}

int run_parameter_server(const Task& task, const std::filesystem::path& train_dir) {
  return ParameterServer(task, train_dir).run();
}

}  // namespace disttf::roles
