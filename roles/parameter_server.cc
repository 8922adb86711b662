#include "roles/parameter_server.h"

#include <asio/co_spawn.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "math/model.h"
#include "net/server.h"
#include "roles/log.h"
#include "roles/outcome.h"
#include "roles/run_config.h"
#include "roles/shard.h"
#include "roles/stop_signal.h"
#include "roles/task_listener.h"
#include "roles/trainer_table.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// How often absences and silences are looked at: fine enough for timeouts given in seconds.
constexpr milliseconds kWatchInterval{100};
// At shutdown: how long trainers that are still connected get to say goodbye. "Every task exits
// within 2 s of the end" bounds it from above, a final evaluation on a busy core from below.
constexpr milliseconds kGoodbyeGrace{1500};
// For the last frames to leave when the process is about to end.
constexpr milliseconds kDrainTimeout{500};

class ParameterServer {
 public:
  explicit ParameterServer(const Task& task)
      : task_(task), trainers_(task, Clock::now()), watch_timer_(context_) {}

  int run();

 private:
  enum class Phase : std::uint8_t { kWaitingForChief, kTraining, kFinishing, kEnded };

  // Connections. Each coroutine ends with its connection.
  std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello);
  asio::awaitable<void> serve(Connection connection);
  asio::awaitable<void> serve_step(Connection connection, std::size_t rank);
  asio::awaitable<void> serve_control(Connection connection, std::size_t rank);

  // One request each; false: the connection was refused or broke.
  asio::awaitable<bool> handle(const Connection& connection, std::size_t rank,
                               const FrameHeader& header);
  asio::awaitable<bool> handle_publish(const Connection& connection, std::size_t rank,
                                       const FrameHeader& header);
  asio::awaitable<bool> handle_restore(const Connection& connection, std::size_t rank,
                                       const FrameHeader& header);
  asio::awaitable<bool> handle_push(const Connection& connection, std::size_t rank,
                                    const FrameHeader& header);
  bool handle_bodiless(const Connection& connection, std::size_t rank, const FrameHeader& header);
  void handle_shutdown(const Connection& connection, const FrameHeader& header);
  void finish_if_alone();

  void wait_for_answer(std::size_t rank, const Connection& connection, const FrameHeader& header);
  void answer_waiting();
  void send_config(const WaitingRequest& request);
  void send_parameters(std::size_t rank, const WaitingRequest& request);
  [[nodiscard]] std::optional<std::string> fault_in(const FrameHeader& header) const;
  [[nodiscard]] std::string status() const;
  bool refuse(const Connection& connection, const FrameHeader& header, ExitCode code,
              const std::string& sentence);

  // The passage of time.
  asio::awaitable<void> watch();
  void check_absences(Clock::time_point now);
  void send_heartbeats();

  // Ends.
  void fail(ExitCode code, const std::string& own_sentence, const std::string& peers_sentence);
  void on_exception(std::exception_ptr exception);
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // no exception gets lost
  [[nodiscard]] std::string self_text() const { return describe(task_.cluster, task_.self); }

  const Task task_;  // constant
  // The io_context's thread owns everything below.
  asio::io_context context_{1};
  TrainerTable trainers_;
  asio::steady_timer watch_timer_;
  std::unique_ptr<net::Listener> listener_;
  std::optional<Shard> shard_;
  std::string config_json_;
  std::uint32_t generation_ = 0;
  Phase phase_ = Phase::kWaitingForChief;
  std::optional<WaitingRequest> shutdown_;  // the chief's, until everybody has left
  Clock::time_point goodbye_deadline_{};
  Clock::time_point next_heartbeat_ = Clock::now();
  std::optional<net::Refusal> verdict_;  // what peers are told once the run has failed
  std::optional<Failure> failure_;       // what run() throws
};

int ParameterServer::run() {
  const StopSignal stop([this](int number) {
    asio::post(context_, [this, number] {
      if (phase_ == Phase::kFinishing || phase_ == Phase::kEnded) {
        return;  // told to stop after a finished run: already on the way to 0
      }
      const std::string why = std::string("stopped by ") + signal_name(number);
      fail(static_cast<ExitCode>(exit_code_for(number)), why + " before the run finished",
           self_text() + " was " + why);
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
  if (auto why = trainers_.reason_to_refuse(task_.cluster.rank_of(hello.from), hello)) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers),
                        .sentence = std::move(*why)};
  }
  return welcome;
}

asio::awaitable<void> ParameterServer::serve(Connection connection) {
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
  }
}

asio::awaitable<bool> ParameterServer::handle(const Connection& connection, std::size_t rank,
                                              const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kPushPull:
      co_return co_await handle_push(connection, rank, header);
    case FrameKind::kPublish:
      co_return co_await handle_publish(connection, rank, header);
    case FrameKind::kRestore:
      co_return co_await handle_restore(connection, rank, header);
    default:
      co_return header.body_size == 0
          ? handle_bodiless(connection, rank, header)
          : refuse(connection, header, kError, "this kind of frame has no body here");
  }
}

bool ParameterServer::handle_bodiless(const Connection& connection, std::size_t rank,
                                      const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kHeartbeat:
      return true;
    case FrameKind::kGetConfig:
      wait_for_answer(rank, connection, header);
      return true;
    case FrameKind::kPull:
      if (phase_ == Phase::kWaitingForChief) {
        return refuse(connection, header, kError, "there are no parameters to pull yet");
      }
      wait_for_answer(rank, connection, header);
      return true;
    case FrameKind::kGoodbye:
      trainers_[rank].goodbye = true;
      connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
      log_info(connection->peer_text() + " said goodbye");
      finish_if_alone();
      return true;
    case FrameKind::kShutdown:
      if (rank != 0 || phase_ == Phase::kEnded) {
        break;
      }
      handle_shutdown(connection, header);
      return true;
    case FrameKind::kStatus: {
      const std::string text = status();
      const auto bytes = std::as_bytes(std::span(text));
      connection->send({.kind = FrameKind::kStatusReply, .request_id = header.request_id},
                       {bytes.begin(), bytes.end()});
      return true;
    }
    default:
      break;
  }
  return refuse(connection, header, kError,
                "frame kind " + std::to_string(static_cast<int>(header.kind)) +
                    " makes no sense from this task now");
}

asio::awaitable<bool> ParameterServer::handle_publish(const Connection& connection,
                                                      std::size_t rank, const FrameHeader& header) {
  if (rank != 0 || header.body_size > net::kMaxControlBodyBytes) {
    co_return refuse(connection, header, kError,
                     "only the chief publishes a configuration, of at most 64 KiB");
  }
  std::vector<std::byte> body(header.body_size);
  if (co_await connection->read_body(body, task_.timeouts.silence)) {
    co_return false;
  }
  std::string json(body.size(), '\0');
  std::memcpy(json.data(), body.data(), body.size());
  try {
    const RunConfig config = run_config_from_json(json);
    if (config.trainers != trainers_.size()) {
      throw std::invalid_argument("the chief counts " + std::to_string(config.trainers) +
                                  " trainers, " + self_text() + " " +
                                  std::to_string(trainers_.size()));
    }
    validate(config);
    if (phase_ != Phase::kWaitingForChief) {
      if (json != config_json_) {
        throw std::invalid_argument("a run with another configuration is under way here");
      }
    } else {
      const std::size_t total = math::layout_of(config.model).size();
      shard_.emplace(config, math::shard_range(total, task_.self.index, task_.cluster.ps.size()));
      config_json_ = std::move(json);
      for (std::size_t each = 0; each < trainers_.size(); ++each) {
        if (trainers_[each].present()) {
          shard_->join(each);
        }
      }
    }
  } catch (const std::invalid_argument& error) {
    co_return refuse(connection, header, kUsage, error.what());
  }
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  co_return true;
}

asio::awaitable<bool> ParameterServer::handle_restore(const Connection& connection,
                                                      std::size_t rank, const FrameHeader& header) {
  if (rank != 0 || !shard_ || phase_ != Phase::kWaitingForChief) {
    co_return refuse(connection, header, kError,
                     "parameters are restored by the chief, after it has published and before "
                     "training begins");
  }
  if (const auto fault = fault_in(header)) {
    co_return refuse(connection, header, kError, *fault);
  }
  const auto parameters = std::as_writable_bytes(shard_->parameters());
  if (co_await connection->read_body(parameters, task_.timeouts.silence)) {
    co_return false;
  }
  shard_->restore(header.step);
  generation_ = header.generation;
  phase_ = Phase::kTraining;
  log_info("holds parameters [" + std::to_string(shard_->range().begin) + ", " +
           std::to_string(shard_->range().end) + ") at step " + std::to_string(header.step));
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  answer_waiting();
  co_return true;
}

// Why a frame with a tensor cannot be about this ps's range, if it cannot.
std::optional<std::string> ParameterServer::fault_in(const FrameHeader& header) const {
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin || header.body_size != range.size() * sizeof(float)) {
    return "a tensor of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not the range of " + self_text() + ": " +
           std::to_string(range.size() * sizeof(float)) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

asio::awaitable<bool> ParameterServer::handle_push(const Connection& connection, std::size_t rank,
                                                   const FrameHeader& header) {
  if (phase_ == Phase::kWaitingForChief) {
    co_return refuse(connection, header, kLostPeers,
                     self_text() + " holds no parameters: it was restarted and lost them");
  }
  if (header.generation != generation_) {
    co_return refuse(connection, header, kLostPeers,
                     "a gradient of generation " + std::to_string(header.generation) +
                         " came while the run is in generation " + std::to_string(generation_));
  }
  if (const auto fault = fault_in(header)) {
    co_return refuse(connection, header, kError, *fault);
  }
  const PushId push{.trainer = rank,
                    .incarnation = connection->hello().incarnation,
                    .step = header.step,
                    .sequence = header.sequence};
  const Admission admission = shard_->admit(push);
  if (admission.verdict == Admission::Verdict::kRefuse) {
    co_return refuse(connection, header, kLostPeers, admission.why);
  }
  if (admission.verdict == Admission::Verdict::kReceive) {
    if (co_await connection->read_body(std::as_writable_bytes(admission.destination),
                                       task_.timeouts.silence)) {
      co_return false;
    }
    shard_->commit(push);
  } else if (co_await connection->discard_body(header.body_size, task_.timeouts.silence)) {
    co_return false;
  }
  wait_for_answer(rank, connection, header);
  co_return true;
}

void ParameterServer::handle_shutdown(const Connection& connection, const FrameHeader& header) {
  phase_ = Phase::kFinishing;
  shutdown_ = WaitingRequest{.connection = connection, .header = header};
  goodbye_deadline_ = Clock::now() + kGoodbyeGrace;
  finish_if_alone();
}

// Answers the chief's shutdown once every other trainer has left or had its time to.
void ParameterServer::finish_if_alone() {
  if (!shutdown_ || (!trainers_.only_chief_left() && Clock::now() < goodbye_deadline_)) {
    return;
  }
  const Connection chief = shutdown_->connection;
  chief->send({.kind = FrameKind::kAck, .request_id = shutdown_->header.request_id});
  shutdown_.reset();
  phase_ = Phase::kEnded;
  log_info("the run is over after step " + std::to_string(shard_ ? shard_->step() : 0));
  spawn([this, chief]() -> asio::awaitable<void> {
    co_await chief->drained(kDrainTimeout);
    context_.stop();
  });
}

void ParameterServer::wait_for_answer(std::size_t rank, const Connection& connection,
                                      const FrameHeader& header) {
  if (trainers_[rank].step == connection) {  // else a newer connection has taken its place
    trainers_[rank].waiting = WaitingRequest{.connection = connection, .header = header};
    answer_waiting();
  }
}

void ParameterServer::answer_waiting() {
  if (phase_ == Phase::kWaitingForChief) {
    return;
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    auto& waiting = trainers_[rank].waiting;
    if (!waiting) {
      continue;
    }
    const FrameKind kind = waiting->header.kind;
    if (kind == FrameKind::kPushPull && !shard_->answerable(rank)) {
      continue;
    }
    const WaitingRequest request = std::move(*waiting);
    waiting.reset();
    if (kind == FrameKind::kGetConfig) {
      send_config(request);
    } else {
      send_parameters(rank, request);
    }
  }
}

void ParameterServer::send_config(const WaitingRequest& request) {
  const auto bytes = std::as_bytes(std::span(config_json_));
  request.connection->send({.kind = FrameKind::kConfig,
                            .request_id = request.header.request_id,
                            .step = shard_->step(),
                            .generation = generation_},
                           {bytes.begin(), bytes.end()});
}

void ParameterServer::send_parameters(std::size_t rank, const WaitingRequest& request) {
  const Answer answer = shard_->answer(rank);
  std::uint16_t flags = answer.finished ? net::kFlagFinished : 0;
  if (answer.dropped && request.header.kind == FrameKind::kPushPull) {
    flags |= net::kFlagDropped;
  }
  request.connection->send_borrowed({.kind = FrameKind::kParameters,
                                     .flags = flags,
                                     .request_id = request.header.request_id,
                                     .step = answer.step,
                                     .sequence = request.header.sequence,
                                     .range_begin = shard_->range().begin,
                                     .generation = generation_},
                                    std::as_bytes(answer.parameters));
}

std::string ParameterServer::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(task_.self);
  out["generation"] = generation_;
  if (shard_) {
    const ShardCounters& counters = shard_->counters();
    out["step"] = shard_->step();
    out["finished"] = shard_->finished();
    out["pushes"] = counters.pushes;
    out["applied"] = counters.applied;
    out["repeats"] = counters.repeats;
    out["dropped"] = counters.dropped;
    out["staleness_sum"] = counters.staleness_sum;
    out["staleness_max"] = counters.staleness_max;
  }
  return out.dump();
}

// Always false, so that handlers can `return refuse(...)`.
bool ParameterServer::refuse(const Connection& connection, const FrameHeader& header, ExitCode code,
                             const std::string& sentence) {
  log_warning("refused " + connection->peer_text() + ": " + sentence);
  connection->refuse({.exit_code = static_cast<std::uint8_t>(code), .sentence = sentence},
                     header.request_id);
  return false;
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
  // strict mode, with backup workers once too few are left, in async never.
  std::vector<bool> matters(trainers_.size(), false);
  matters[0] = true;
  if (!shard_ || shard_->config().sync_replicas) {
    std::size_t present = 0;
    for (const TrainerRecord& record : trainers_.records()) {
      present += record.present() ? 1U : 0U;
    }
    const std::size_t needed = shard_ && shard_->config().replicas_to_aggregate != 0
                                   ? shard_->config().replicas_to_aggregate
                                   : trainers_.size();
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
    sentence = std::string(absence->rank == 0 ? "the chief, " : "") +
               describe(task_.cluster, task_.cluster.trainer(absence->rank)) +
               ", has been gone for " + limit;
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

}  // namespace

int run_parameter_server(const Task& task) { return ParameterServer(task).run(); }

}  // namespace disttf::roles
