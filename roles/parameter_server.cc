#include "roles/parameter_server.h"

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <utility>
#include <vector>

#include "roles/log.h"
#include "roles/parameter_server_state.h"
#include "roles/stop_signal.h"
#include "roles/task_listener.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// How often absences and silences are looked at: fine enough for timeouts given in seconds.
constexpr milliseconds kWatchInterval{100};

}  // namespace

int ParameterServer::run() {
  const StopSignal stop([this](int number) {
    asio::post(context_, [this, number] {
      if (phase_ == Phase::kFinishing || phase_ == Phase::kEnded) {
        return;  // told to stop after a finished run: already on the way to 0
      }
      const std::string why = std::string("stopped by ") + signal_name(number);
      const auto code = static_cast<ExitCode>(exit_code_for(number));
      if (number == SIGINT) {  // somebody's Ctrl-C is meant for the run
        fail(code, why + " before the run finished", self_text() + " was " + why);
      } else {  // an orchestrator moves this task: its trainers wait for the next one
        leave(code, why + " before the run finished");
      }
    });
  });
  net::ServerHooks hooks;
  hooks.make_welcome = [this](const net::Hello& hello) { return welcome(hello); };
  hooks.on_connection = [this](Connection connection) { return serve(std::move(connection)); };
  hooks.on_error = [this](std::exception_ptr exception) { on_exception(exception); };
  listener_ = open_task_listener(context_, task_, std::move(hooks));
  spawn([this] { return watch(); });
  context_.run();
  if (failure_) {
    throw Failure(*failure_);
  }
  return kDone;
}

std::variant<net::Welcome, net::Refusal> ParameterServer::welcome(const net::Hello& hello) {
  if (verdict_) {
    return *verdict_;
  }
  net::Welcome welcome{.incarnation = task_.incarnation,
                       .state = net::ShardState::kEmpty,
                       .generation = generation_,
                       .step = shard_ ? shard_->step() : 0,
                       .heartbeat_ms = static_cast<std::uint32_t>(kHeartbeatInterval.count())};
  if (phase_ == Phase::kFinishing || phase_ == Phase::kEnded) {
    welcome.state = net::ShardState::kFinished;
  } else if (phase_ == Phase::kTraining) {
    welcome.state = net::ShardState::kReady;
  }
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    return welcome;
  }
  if (hello.from.job != net::Job::kChief && hello.from.job != net::Job::kWorker) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = net::to_string(hello.from) +
                                    " is no trainer: only chief and "
                                    "workers push to " +
                                    self_text()};
  }
  if (hello.purpose == net::ChannelPurpose::kState && task_.cluster.rank_of(hello.from) != 0) {
    return net::Refusal{.exit_code = kUsage, .sentence = "only the chief collects the state"};
  }
  if (auto why = trainers_.reason_to_refuse(task_.cluster.rank_of(hello.from), hello)) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers),
                        .sentence = std::move(*why)};
  }
  return welcome;
}

asio::awaitable<void> ParameterServer::serve(Connection connection) {
  if (connection->hello().purpose == net::ChannelPurpose::kState) {
    co_await serve_state(connection);
    co_return;
  }
  const std::size_t rank = task_.cluster.rank_of(connection->hello().from);
  if (trainers_.attach(rank, connection, Clock::now())) {
    log_info(connection->peer_text() + " joined");
    if (shard_) {
      shard_->join(rank);
    }
  }
  if (connection->hello().purpose == net::ChannelPurpose::kStep) {
    co_await serve_step(connection, rank);
  } else {
    co_await serve_control(connection, rank);
  }
  if (trainers_.detach(rank, connection, Clock::now())) {
    if (shard_) {
      shard_->leave(rank);
      answer_waiting();  // async: it may have been the slowest
      deal_missing();    // elastic: it may have been the only one that was computing
    }
    if (!trainers_[rank].goodbye && !verdict_) {
      log_warning(connection->peer_text() + " was lost");
    }
    finish_if_alone();
  }
}

asio::awaitable<void> ParameterServer::serve_step(Connection connection, std::size_t rank) {
  while (connection->is_open()) {
    FrameHeader header;
    // No limit on silence: a step may take long. The control channel's heartbeats tell.
    if (co_await connection->read_header(header, milliseconds{0})) {
      break;
    }
    trainers_[rank].last_heard = Clock::now();
    if (!co_await handle(connection, rank, header)) {
      break;
    }
  }
}

asio::awaitable<void> ParameterServer::serve_control(Connection connection, std::size_t rank) {
  while (connection->is_open()) {
    FrameHeader header;
    if (co_await connection->read_header(header, task_.timeouts.silence)) {
      break;
    }
    trainers_[rank].last_heard = Clock::now();
    if (header.kind != FrameKind::kHeartbeat || header.body_size != 0) {
      refuse(connection, header, kError, "a control channel carries heartbeats only");
      break;
    }
    // Trainers name a generation only once every ps holds it. That this one does not means that
    // another process has taken its place. Only a trainer that it knows is believed: the
    // incarnation is a secret between the two.
    if (phase_ == Phase::kTraining && header.generation > generation_ &&
        connection->hello().incarnation == trainers_[rank].incarnation) {
      leave(kLostPeers, "was replaced while it was silent: the run is in generation " +
                            std::to_string(header.generation) + ", this task holds generation " +
                            std::to_string(generation_));
      break;
    }
  }
}

asio::awaitable<void> ParameterServer::watch() {
  while (phase_ != Phase::kEnded) {
    watch_timer_.expires_after(kWatchInterval);
    co_await watch_timer_.async_wait(asio::use_awaitable);
    const auto now = Clock::now();
    trainers_.close_silent(now);
    if (now >= next_heartbeat_) {
      next_heartbeat_ = now + kHeartbeatInterval;
      send_heartbeats();
    }
    finish_if_alone();
    if (!verdict_ && phase_ != Phase::kFinishing) {
      check_absences(now);
    }
  }
}

void ParameterServer::send_heartbeats() {
  for (const TrainerRecord& record : trainers_.records()) {
    if (record.waiting) {
      record.waiting->connection->send({.kind = FrameKind::kHeartbeat,
                                        .request_id = record.waiting->header.request_id,
                                        .step = shard_ ? shard_->step() : 0,
                                        .generation = generation_});
    }
  }
}

void ParameterServer::check_absences(Clock::time_point now) {
  // The chief always matters. Workers do when a step cannot be made without them: always in the
  // strict mode, with backup or elastic workers once too few are left, in async or after the last
  // step never.
  std::vector<bool> matters(trainers_.size(), false);
  matters[0] = true;
  if (!shard_ || (shard_->config().sync_replicas && !shard_->finished())) {
    std::size_t present = 0;
    for (const TrainerRecord& record : trainers_.records()) {
      present += record.present() ? 1U : 0U;
    }
    std::size_t needed = trainers_.size();
    if (shard_ && shard_->config().elastic()) {
      needed = shard_->config().min_workers + task_.cluster.chief.size();
    } else if (shard_ && shard_->config().replicas_to_aggregate != 0) {
      needed = shard_->config().replicas_to_aggregate;
    }
    if (present < needed) {
      matters.assign(trainers_.size(), true);
    }
  }
  const auto absence = trainers_.overdue(now, matters);
  if (!absence) {
    return;
  }
  std::string sentence;
  const std::string limit = std::to_string(absence->limit.count()) + " s";
  if (absence->joined) {
    const std::string name = describe(task_.cluster, task_.cluster.trainer(absence->rank));
    sentence =
        (absence->rank == 0 ? "the chief, " + name + "," : name) + " has been gone for " + limit;
  } else {
    sentence = "waited " + limit + " for " + trainers_.never_seen() + " to join";
  }
  fail(kLostPeers, sentence, sentence + " (says " + self_text() + ")");
}

void ParameterServer::fail(ExitCode code, const std::string& own_sentence,
                           const std::string& peers_sentence) {
  if (verdict_) {
    return;
  }
  failure_.emplace(code, own_sentence);
  verdict_ =
      net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers), .sentence = peers_sentence};
  for (TrainerRecord& record : trainers_.records()) {
    if (record.step) {
      record.step->refuse(*verdict_, record.waiting ? record.waiting->header.request_id : 0);
    }
  }
  phase_ = Phase::kEnded;
  // Peers get a moment to take the sentence; whoever is computing finds it at its next request,
  // or the closed port, and says so itself.
  spawn([this]() -> asio::awaitable<void> {
    asio::steady_timer timer(context_, kDrainTimeout);
    co_await timer.async_wait(asio::use_awaitable);
    context_.stop();
  });
}

void ParameterServer::leave(ExitCode code, const std::string& sentence) {
  if (phase_ == Phase::kEnded) {
    return;
  }
  failure_.emplace(code, sentence);
  phase_ = Phase::kEnded;
  context_.stop();
}

void ParameterServer::spawn(std::function<asio::awaitable<void>()> coroutine) {
  asio::co_spawn(context_, std::move(coroutine), [this](std::exception_ptr exception) {
    if (exception) {
      on_exception(exception);
    }
  });
}

void ParameterServer::on_exception(std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    fail(kError, error.what(), self_text() + " failed: " + error.what());
  }
}

int run_parameter_server(const Task& task, const std::filesystem::path& train_dir) {
  return ParameterServer(task, train_dir).run();
}

}  // namespace disttf::roles
