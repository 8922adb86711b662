#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "math/model.h"
#include "roles/process/log.h"
#include "roles/process/shared_limits.h"
#include "roles/ps/shell/ps_process.h"
#include "roles/run/run_config.h"
#include "roles/run/wire_format.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

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
    case FrameKind::kPull:
      if (is_finishing() && !shard_) {  // a ps that was started again just when the run ended
        fence(connection, header);
        return true;
      }
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
      return handle_goodbye(connection, rank, header);
    case FrameKind::kShutdown:
      return handle_shutdown(connection, rank, header);
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

// The same of one with a gradient, which lies there as the run's configuration says.
std::optional<std::string> RangeServer::gradient_fault(const FrameHeader& header) const {
  const WireFormat& wire = shard_->wire();
  const std::uint16_t flags = gradient_flags(wire);
  constexpr unsigned kForms = net::kFlagBf16 | net::kFlagInt8 | net::kFlagInt4 | net::kFlagSparse;
  const bool in_place = (header.flags & net::kFlagShared) != 0;
  if (!in_place && (header.flags & kForms) != flags) {
    return "a gradient in another form than --wire_dtype and --compress of the run say";
  }
  if (in_place || flags == 0) {
    return fault_in(header);
  }
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin ||
      !is_gradient_size(wire, range.size(), header.body_size)) {
    return "a gradient of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not one of the range of " +
           process_.self_text() + ": at most " +
           std::to_string(longest_gradient(wire, range.size())) + " bytes from float " +
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
  net::SharedOffer offer;
  if (co_await connection->read_body(body, task_.timeouts.silence) || net::decode(body, offer)) {
    co_return false;
  }
  TrainerRecord& record = trainers_[rank];
  record.unshare();
  FrameHeader answer{.kind = FrameKind::kShared, .request_id = header.request_id};
  std::vector<std::byte> answer_body;
  if (shard_ && !shard_->config().elastic() && answers_ && task_.transport != Transport::kTcp) {
    std::error_code error;  // whatever it is, frames will do
    if (offer.size >= shard_->range().end * sizeof(float)) {
      const std::size_t most =
          most_shared_by_trainer(math::layout_of(shard_->config().model).size());
      record.gradient = net::SharedView::open(offer, most, error);
    }
    if (record.gradient) {
      answer_body = net::encode(answers_->offer());
      answer.sequence = watch_sleep(rank, header.sequence);
    }
  }
  connection->send(answer, std::move(answer_body));
  co_return true;
}

// From now on this trainer finds answers in the ps's memory, where this says, unless it sleeps, as
// the word says that lies `at` bytes from where its gradients do. 0: it goes on with frames.
std::uint64_t RangeServer::watch_sleep(std::size_t rank, std::uint64_t at) {
  TrainerRecord& record = trainers_[rank];
  const std::size_t size = record.gradient->bytes().size();
  if (at == 0 || at % net::kSleepWordBytes != 0 || size < net::kSleepWordBytes ||
      at > size - net::kSleepWordBytes) {
    return 0;
  }
  record.sleep_word = at;
  return answers_->slot_offset(rank);
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
  if (!shard_ || phase_ == Phase::kWaitingForChief || header.generation != generation_) {
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
  if (const auto fault = gradient_fault(header)) {
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
  if (!in_place &&
      !co_await receive_gradient(connection, rank, header, shard, admission.destination)) {
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

asio::awaitable<bool> RangeServer::receive_gradient(const Connection& connection, std::size_t rank,
                                                    const FrameHeader& header,
                                                    const std::shared_ptr<Shard>& shard,
                                                    std::span<float> destination) {
  if (gradient_flags(shard->wire()) == 0) {
    co_return !co_await connection->read_body(std::as_writable_bytes(destination),
                                              task_.timeouts.silence);
  }
  const std::span<std::byte> body = shard->packed_inbox(rank, header.body_size);
  if (co_await connection->read_body(body, task_.timeouts.silence)) {
    co_return false;
  }
  if (unpack_gradient(shard->wire(), body, destination)) {
    co_return refuse(connection, header, kError,
                     "a sparse gradient whose components are not ascending ones of the range of " +
                         process_.self_text() + ", none of them 0");
  }
  co_return true;
}

void RangeServer::fence(const Connection& connection, const FrameHeader& header) {
  connection->send({.kind = FrameKind::kFenced,
                    .request_id = header.request_id,
                    .step = shard_ ? shard_->step() : 0,
                    .generation = generation_});
}

std::string RangeServer::status() const {
  nlohmann::ordered_json out;
  out["task"] = net::to_string(task_.self);
  out["generation"] = generation_;
  if (standing_ != net::Standing::kOnly) {
    out["view"] = view_.number;
    out["has_backup"] = backup_complete_;
  }
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
