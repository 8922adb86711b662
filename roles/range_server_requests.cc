#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "math/model.h"
#include "roles/log.h"
#include "roles/ps_process.h"
#include "roles/run_config.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// At shutdown: how long trainers that are still connected, or have just lost their connection, get
// to say goodbye. "Every task exits within 2 s of the end" bounds it from above, a final evaluation
// on a busy core from below.
constexpr milliseconds kGoodbyeGrace{1500};

// The whole vector's gradient lies there.
std::span<const float> gradient_in(const net::SharedView& memory, math::Range range) {
  return std::span(reinterpret_cast<const float*>(memory.bytes().data()), range.end)
      .subspan(range.begin);
}

}  // namespace

asio::awaitable<bool> RangeServer::handle(const Connection& connection, std::size_t rank,
                                          const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kPushPull:
      co_return co_await handle_push(connection, rank, header);
    case FrameKind::kPush: {
      bool stands = false;  // no reply: the trainer's next pull is told
      co_return co_await take_gradient(connection, rank, header, stands);
    }
    case FrameKind::kPublish:
      co_return co_await handle_publish(connection, rank, header);
    case FrameKind::kRestore:
      co_return co_await handle_restore(connection, rank, header);
    case FrameKind::kShare:
      co_return co_await handle_share(connection, rank, header);
    default:
      co_return header.body_size == 0
          ? handle_bodiless(connection, rank, header)
          : refuse(connection, header, kError, "this kind of frame has no body here");
  }
}

bool RangeServer::handle_bodiless(const Connection& connection, std::size_t rank,
                                  const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kHeartbeat:
      return true;
    case FrameKind::kGetConfig:
      wait_for_answer(rank, connection, header);
      return true;
    case FrameKind::kPull:
      if ((header.flags & net::kFlagNext) != 0) {
        if (phase_ == Phase::kWaitingForChief || header.generation != generation_) {
          fence(connection, header);
          return true;
        }
        if (rank == 0 && (header.flags & net::kFlagCut) != 0) {
          shard_->want_cut(header.sequence, header.step + 1);
        }
      }
      wait_for_answer(rank, connection, header);
      return true;
    case FrameKind::kGoodbye:
      trainers_[rank].goodbye = true;
      connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
      log_info(connection->peer_text() + " said goodbye");
      end_steps();
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

asio::awaitable<bool> RangeServer::handle_publish(const Connection& connection, std::size_t rank,
                                                  const FrameHeader& header) {
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
    const RunConfig config = checked_config(json);
    if (json != config_json_) {
      if (phase_ != Phase::kWaitingForChief) {
        throw std::invalid_argument("a run with another configuration is under way here");
      }
      make_shard(config, connection);
      config_json_ = std::move(json);
    }
  } catch (const std::invalid_argument& error) {
    co_return refuse(connection, header, kUsage, error.what());
  } catch (const std::bad_alloc&) {
    co_return refuse(connection, header, kError,
                     process_.self_text() +
                         " has not the memory for its range of the parameters, the "
                         "optimizer's state and one gradient of each trainer");
  }
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  co_return true;
}

RunConfig RangeServer::checked_config(const std::string& json) const {
  RunConfig config = run_config_from_json(json);
  if (config.trainers != trainers_.size()) {
    throw std::invalid_argument("the chief counts " + std::to_string(config.trainers) +
                                " trainers, " + process_.self_text() + " " +
                                std::to_string(trainers_.size()));
  }
  validate(config);
  if (const auto why = missing_isa(config, math::supported_isas())) {
    throw std::invalid_argument(*why);
  }
  if ((config.ps_replicas > 1) != (standing_ != net::Standing::kOnly)) {
    throw std::invalid_argument("the chief has --ps_replicas " +
                                std::to_string(config.ps_replicas) + ", a run with another " +
                                "number is under way here");
  }
  return config;
}

void RangeServer::make_shard(const RunConfig& config, const Connection& chief) {
  if (shard_) {
    for (TrainerRecord& record : trainers_.records()) {
      if (record.step && record.step != chief) {
        record.step->close();  // a reply may still borrow the old shard's memory
      }
    }
  }
  for (TrainerRecord& record : trainers_.records()) {
    record.gradient.reset();  // of another model; and it was told where the old shard lay
  }
  config_json_.clear();
  shard_.reset();  // its memory is needed for the new one
  const std::size_t total = math::layout_of(config.model).size();
  shard_ =
      std::make_shared<Shard>(config, math::shard_range(total, index_, task_.cluster.ps.size()));
  if (config.ps_replicas > 1) {
    shard_->on_update([this](const ShardUpdate& update) { forward(update); });
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (trainers_[rank].present()) {
      shard_->join(rank);
    }
  }
}

asio::awaitable<bool> RangeServer::handle_restore(const Connection& connection, std::size_t rank,
                                                  const FrameHeader& header) {
  if (rank != 0 || !shard_ || (phase_ != Phase::kWaitingForChief && phase_ != Phase::kTraining)) {
    co_return refuse(connection, header, kError,
                     "a state is restored by the chief, after it has published and before the end");
  }
  const std::shared_ptr<Shard> shard = shard_;
  const bool parameters_only = header.body_size == shard->range().size() * sizeof(float);
  if (header.range_begin != shard->range().begin ||
      (!parameters_only && header.body_size != shard->state_size() * sizeof(float))) {
    co_return refuse(connection, header, kError, fault_in(header).value_or("not a state"));
  }
  if (header.generation <= generation_) {  // a copy, or one that was overtaken
    if (co_await connection->discard_body(header.body_size, task_.timeouts.silence)) {
      co_return false;
    }
    fence(connection, header);
    co_return true;
  }
  phase_ = Phase::kWaitingForChief;  // what was here is being overwritten
  lose_backup();
  for (const std::span<float> place : shard->begin_restore(parameters_only)) {
    if (co_await connection->read_body(std::as_writable_bytes(place), task_.timeouts.silence)) {
      co_return false;
    }
  }
  if (shard != shard_) {
    co_return false;  // a newer chief has begun another run here meanwhile
  }
  shard->finish_restore(header.step);
  deal_step();
  generation_ = header.generation;
  phase_ = Phase::kTraining;
  over_ = false;
  send_report();
  log_info("holds parameters [" + std::to_string(shard->range().begin) + ", " +
           std::to_string(shard->range().end) + ") at step " + std::to_string(header.step) +
           ", generation " + std::to_string(generation_));
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  for (TrainerRecord& record : trainers_.records()) {
    if (record.waiting && record.waiting->header.kind == FrameKind::kPushPull) {
      fence(record.waiting->connection, record.waiting->header);
      record.waiting.reset();
    }
  }
  answer_waiting();
  co_return true;
}

// Why a frame with a tensor cannot be about this ps's range, if it cannot.
std::optional<std::string> RangeServer::fault_in(const FrameHeader& header) const {
  const math::Range range = shard_->range();
  const bool in_place = (header.flags & net::kFlagShared) != 0;
  if (header.range_begin != range.begin ||
      header.body_size != (in_place ? 0 : range.size() * sizeof(float))) {
    return "a tensor of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not the range of " + process_.self_text() +
           ": " + std::to_string(range.size() * sizeof(float)) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

// Reads gradients of this trainer in its own memory from now on, if that can be had, and says where
// the parameters lie.
asio::awaitable<bool> RangeServer::handle_share(const Connection& connection, std::size_t rank,
                                                const FrameHeader& header) {
  std::array<std::byte, net::kSharedOfferBytes> body{};
  if (header.body_size != body.size()) {
    co_return refuse(connection, header, kError, "no offer of shared memory");
  }
  if (co_await connection->read_body(body, task_.timeouts.silence)) {
    co_return false;
  }
  TrainerRecord& record = trainers_[rank];
  record.gradient.reset();
  std::vector<std::byte> answer;
  if (shard_ && !shard_->config().elastic() && shard_->shared_memory() != nullptr &&
      task_.transport != Transport::kTcp) {
    const net::SharedOffer offer = net::decode_offer(body);
    std::error_code error;
    if (offer.size >= shard_->range().end * sizeof(float)) {
      record.gradient = net::SharedView::open(offer, error);
    }
    if (record.gradient) {
      const auto own = net::encode_offer(shard_->shared_memory()->offer());
      answer.assign(own.begin(), own.end());
    }
  }
  connection->send({.kind = FrameKind::kShared, .request_id = header.request_id},
                   std::move(answer));
  co_return true;
}

asio::awaitable<bool> RangeServer::handle_push(const Connection& connection, std::size_t rank,
                                               const FrameHeader& header) {
  bool stands = false;
  if (!co_await take_gradient(connection, rank, header, stands)) {
    co_return false;
  }
  if (stands) {
    wait_for_answer(rank, connection, header);
  } else {
    fence(connection, header);
  }
  co_return true;
}

asio::awaitable<bool> RangeServer::take_gradient(const Connection& connection, std::size_t rank,
                                                 const FrameHeader& header, bool& stands) {
  if (phase_ == Phase::kWaitingForChief || header.generation != generation_) {
    if (header.body_size > kMaxParameters * sizeof(float)) {
      co_return refuse(connection, header, kError, "no gradient is that large");
    }
    co_return !co_await connection->discard_body(header.body_size, task_.timeouts.silence);
  }
  const std::shared_ptr<Shard> shard = shard_;
  const std::shared_ptr<const net::SharedView> memory = trainers_[rank].gradient;
  const bool in_place = (header.flags & net::kFlagShared) != 0;
  if (in_place && (!memory || header.kind != FrameKind::kPushPull)) {
    co_return refuse(connection, header, kError, "a gradient in memory that is not shared");
  }
  if (const auto fault = fault_in(header)) {
    co_return refuse(connection, header, kError, *fault);
  }
  if (shard->config().elastic() != (header.kind == FrameKind::kPush)) {
    co_return refuse(connection, header, kError, "a push of another mode than the run's");
  }
  const PushId push{.trainer = rank,
                    .incarnation = connection->hello().incarnation,
                    .step = header.step,
                    .sequence = header.sequence,
                    .wants_cut = rank == 0 && (header.flags & net::kFlagCut) != 0,
                    .micro_batch = static_cast<std::size_t>(header.sequence),
                    .in_place = in_place};
  const Admission admission = shard->admit(push);
  if (admission.verdict == Admission::Verdict::kRefuse) {
    co_return refuse(connection, header, kLostPeers, admission.why);
  }
  if (admission.verdict == Admission::Verdict::kDiscard) {
    stands = true;
    trainers_[rank].owed -= std::min<std::size_t>(trainers_[rank].owed, 1);
    co_return !co_await connection->discard_body(header.body_size, task_.timeouts.silence);
  }
  if (co_await connection->read_body(std::as_writable_bytes(admission.destination),
                                     task_.timeouts.silence)) {
    co_return false;
  }
  // The state may have been replaced while the gradient was on its way.
  stands = phase_ != Phase::kWaitingForChief && header.generation == generation_ && shard == shard_;
  TrainerRecord& record = trainers_[rank];
  if (stands) {
    record.owed -= std::min<std::size_t>(record.owed, 1);
    const std::uint64_t step = shard->step();
    if (in_place) {
      shard->commit(push, gradient_in(*memory, shard->range()), memory);
    } else {
      shard->commit(push);
    }
    if (shard->config().elastic() && shard->step() != step) {
      deal_step();
      answer_waiting();
    }
  }
  co_return true;
}

void RangeServer::fence(const Connection& connection, const FrameHeader& header) {
  connection->send({.kind = FrameKind::kFenced,
                    .request_id = header.request_id,
                    .step = shard_ ? shard_->step() : 0,
                    .generation = generation_});
}

void RangeServer::handle_shutdown(const Connection& connection, const FrameHeader& header) {
  phase_ = Phase::kFinishing;
  shutdown_ = WaitingRequest{.connection = connection, .header = header};
  goodbye_deadline_ = Clock::now() + kGoodbyeGrace;
  end_steps();
  finish_if_alone();
}

// Ps 0 has told somebody that the run is over. Backup workers: here a gradient may have come late
// that counted there, so that the last step lacks one, and nobody is left to push it.
void RangeServer::end_steps() {
  over_ = true;
  answer_waiting();
}

// Answers the chief's shutdown once every other trainer has left or had its time to.
void RangeServer::finish_if_alone() {
  const auto now = Clock::now();
  // Whoever starts late is to learn here that the run is over; in an elastic one nobody has to
  // come.
  const bool needed = shard_ && !shard_->config().elastic();
  if (!shutdown_ ||
      (!trainers_.only_chief_left(now, kGoodbyeGrace, needed) && now < goodbye_deadline_)) {
    return;
  }
  const Connection chief = shutdown_->connection;
  chief->send({.kind = FrameKind::kAck, .request_id = shutdown_->header.request_id});
  shutdown_.reset();
  log_info("the run is over after step " + std::to_string(shard_ ? shard_->step() : 0));
  end(chief);
}

void RangeServer::wait_for_answer(std::size_t rank, const Connection& connection,
                                  const FrameHeader& header) {
  if (trainers_[rank].step == connection) {  // else a newer connection has taken its place
    trainers_[rank].waiting =
        WaitingRequest{.connection = connection, .header = header, .log_index = log_head_};
    answer_waiting();
    deal_missing();
  }
}

void RangeServer::answer_waiting() {
  if (phase_ == Phase::kWaitingForChief) {
    return;
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    auto& waiting = trainers_[rank].waiting;
    if (!waiting || !is_answerable(rank, waiting->header) || !is_safe(*waiting)) {
      continue;
    }
    const WaitingRequest request = std::move(*waiting);
    waiting.reset();
    trainers_[rank].owed = 0;
    if (request.header.kind == FrameKind::kGetConfig) {
      send_config(request);
    } else {
      send_parameters(rank, request);
    }
  }
}

bool RangeServer::is_answerable(std::size_t rank, const FrameHeader& header) const {
  if (over_) {
    return true;
  }
  if (header.kind == FrameKind::kPushPull) {
    return shard_->answerable(rank);
  }
  if ((header.flags & net::kFlagNext) != 0) {
    return header.step < shard_->step() || shard_->finished();
  }
  return true;
}

// Whoever is here when a step begins shares it. Only ps 0's word counts, in its replies.
void RangeServer::deal_step() {
  dealt_to_.clear();
  const bool enough = enough_present();
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (enough && trainers_[rank].present()) {
      dealt_to_.push_back(rank);
    }
  }
}

// "First and stride" of the micro-batches that this trainer takes: first | stride << 32; 0: none.
std::uint64_t RangeServer::share_of(std::size_t rank) const {
  const auto place = std::ranges::find(dealt_to_, rank);
  if (place == dealt_to_.end()) {
    return 0;
  }
  return static_cast<std::uint64_t>(place - dealt_to_.begin()) |
         static_cast<std::uint64_t>(dealt_to_.size()) << 32U;
}

// When everybody who is here waits and the step is still not made, then those who were to compute
// the rest have left, or it was never dealt: it is dealt now. Whichever trainer computes a
// micro-batch, and if two do, the bits are the same, so ps need not agree on any of this.
void RangeServer::deal_missing() {
  if (!shard_ || !shard_->config().elastic() || phase_ != Phase::kTraining || shard_->finished() ||
      !enough_present()) {
    return;
  }
  std::vector<TrainerRecord*> idle;
  for (TrainerRecord& record : trainers_.records()) {
    if (!record.present()) {
      continue;
    }
    if (!record.waiting || (record.waiting->header.flags & net::kFlagNext) == 0 ||
        record.owed != 0) {
      return;
    }
    idle.push_back(&record);
  }
  const std::vector<std::size_t> missing = shard_->missing();
  for (std::size_t each = 0; each < missing.size() && !idle.empty(); ++each) {
    TrainerRecord& record = *idle[each % idle.size()];
    ++record.owed;
    record.waiting->connection->send({.kind = FrameKind::kWork,
                                      .request_id = record.waiting->header.request_id,
                                      .step = shard_->step(),
                                      .sequence = missing[each],
                                      .generation = generation_});
  }
}

// The chief task is no worker, but trains.
bool RangeServer::enough_present() const {
  std::size_t present = 0;
  for (const TrainerRecord& record : trainers_.records()) {
    present += record.present() ? 1U : 0U;
  }
  return present >= shard_->config().min_workers + task_.cluster.chief.size();
}

void RangeServer::send_config(const WaitingRequest& request) {
  const auto bytes = std::as_bytes(std::span(config_json_));
  request.connection->send({.kind = FrameKind::kConfig,
                            .request_id = request.header.request_id,
                            .step = shard_->step(),
                            .generation = generation_},
                           {bytes.begin(), bytes.end()});
}

void RangeServer::send_parameters(std::size_t rank, const WaitingRequest& request) {
  Answer answer = shard_->answer(rank);
  if ((request.header.flags & net::kFlagPrevious) != 0) {
    answer = shard_->previous().value_or(answer);
  }
  const bool finished = answer.finished || over_;
  std::uint16_t flags = finished ? net::kFlagFinished : 0;
  if (answer.dropped && request.header.kind == FrameKind::kPushPull) {
    flags |= net::kFlagDropped;
  }
  FrameHeader header{
      .kind = FrameKind::kParameters,
      .flags = flags,
      .request_id = request.header.request_id,
      .step = answer.step,
      .sequence = shard_->config().elastic() ? share_of(rank) : request.header.sequence,
      .range_begin = shard_->range().begin,
      .generation = generation_};
  const auto body = std::as_bytes(answer.parameters);
  if ((request.header.flags & net::kFlagShared) != 0 && trainers_[rank].gradient) {
    header.flags |= net::kFlagShared;
    header.sequence =
        static_cast<std::uint64_t>(body.data() - shard_->shared_memory()->bytes().data());
    request.connection->send(header);
  } else {
    request.connection->send_borrowed(header, body);
  }
}

std::string RangeServer::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(task_.self);
  out["generation"] = generation_;
  if (standing_ != net::Standing::kOnly) {
    out["view"] = view_.number;
    out["has_backup"] = backup_complete_;
  }
  out["everybody_left"] = trainers_.everybody_said_goodbye();
  if (shard_) {
    const ShardCounters& counters = shard_->counters();
    out["step"] = shard_->step();
    out["finished"] = shard_->finished();
    if (shard_->config().sync_replicas && !shard_->finished()) {
      for (const std::size_t rank : shard_->missing()) {
        out["waiting_for"].push_back(net::to_string(task_.cluster.trainer(rank)));
      }
    }
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
bool RangeServer::refuse(const Connection& connection, const FrameHeader& header, ExitCode code,
                         const std::string& sentence) {
  log_warning("refused " + connection->peer_text() + ": " + sentence);
  connection->refuse({.exit_code = static_cast<std::uint8_t>(code), .sentence = sentence},
                     header.request_id);
  return false;
}

}  // namespace disttf::roles
