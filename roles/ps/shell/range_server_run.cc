#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "math/model.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/ps/shell/ps_process.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

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
    record.unshare();  // of another model; and it was told where the old shard lay
  }
  config_json_.clear();
  shard_.reset();  // its memory is needed for the new one
  answers_.reset();
  const std::size_t total = math::layout_of(config.model).size();
  const math::Range range = math::shard_range(total, index_, task_.cluster.ps.size());
  answers_ = AnswerMemory::create(Shard::arena_size(config, range), trainers_.size());
  shard_ = std::make_shared<Shard>(config, range, threads_of(task_),
                                   answers_ ? answers_->arena() : Arena{});
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
  trainers_.nobody_is_done();
  fence_waiting();
  answer_waiting();
  co_return true;
}

}  // namespace disttf::roles
