#include <new>
#include <stdexcept>
#include <utility>

#include "math/kernels.h"
#include "math/model.h"
#include "roles/ps/core/range_replica.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

BodyPlan RangeReplica::publish_header(ConnectionId id, Connection& from) {
  if (from.rank != 0 || from.header.body_size > net::kMaxControlBodyBytes) {
    return refuse(id, from, kError, "only the chief publishes a configuration, of at most 64 KiB");
  }
  if (const auto error = net::Publish{}.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  return into_bytes(from, Part::kPublish, from.header.body_size);
}

BodyPlan RangeReplica::publish_came(ConnectionId id, Connection& from) {
  std::string json(reinterpret_cast<const char*>(from.bytes.data()), from.bytes.size());
  try {
    const RunConfig config = checked_config(json);
    if (json != config_json_) {
      if (!awaits_state()) {
        throw std::invalid_argument("a run with another configuration is under way here");
      }
      make_shard(config, id);
      config_json_ = std::move(json);
    }
  } catch (const std::invalid_argument& error) {
    return refuse(id, from, kUsage, error.what());
  } catch (const std::bad_alloc&) {
    return refuse(id, from, kError,
                  self_text() +
                      " has not the memory for its range of the parameters, the "
                      "optimizer's state and one gradient of each trainer");
  }
  out_.send(id, net::Ack{from.header.request_id}.to_header());
  return {};
}

RunConfig RangeReplica::checked_config(const std::string& json) const {
  RunConfig config = run_config_from_json(json);
  if (config.trainers != trainers_.size()) {
    throw std::invalid_argument("the chief counts " + std::to_string(config.trainers) +
                                " trainers, " + self_text() + " " +
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

void RangeReplica::drop_shard() {
  shard_.reset();
  dealer_.reset();
  is_restored_ = false;
  count_needed();
}

void RangeReplica::make_shard(const RunConfig& config, ConnectionId chief) {
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (shard_ && trainers_[rank].step != chief) {
      out_.close(trainers_[rank].step);  // a reply may still borrow the old shard's memory
    }
  }
  config_json_.clear();
  drop_shard();  // its memory is needed for the new one
  const std::size_t total = math::layout_of(config.model).size();
  const math::Range range = math::shard_range(total, index_, task_.cluster.ps.size());
  shard_ = std::make_shared<Shard>(
      config, range, threads_,
      make_arena_ ? make_arena_(Shard::arena_size(config, range), trainers_.size()) : Arena{});
  if (config.elastic()) {  // the chief task is no worker, but trains
    dealer_.emplace(trainers_.size(), config.min_workers + task_.cluster.chief.size());
  }
  if (config.ps_replicas > 1) {
    shard_->on_update([this](const ShardUpdate& update) { forward(update); });
  }
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    if (trainers_[rank].present()) {
      shard_->join(rank);
    }
  }
  count_needed();
}

BodyPlan RangeReplica::restore_header(ConnectionId id, Connection& from) {
  const net::FrameHeader& header = from.header;
  net::Restore restore;
  if (const auto error = restore.from_header(header)) {
    return refuse(id, from, kError, error.message());
  }
  if (from.rank != 0 || !shard_ || is_finishing()) {
    return refuse(id, from, kError,
                  "a state is restored by the chief, after it has published and before the end");
  }
  const bool parameters_only = header.body_size == shard_->range().size() * sizeof(float);
  if (restore.range_begin != shard_->range().begin ||
      (!parameters_only && header.body_size != shard_->state_size() * sizeof(float))) {
    return refuse(id, from, kError, fault_in(header).value_or("not a state"));
  }
  if (restore.generation <= generation_) {  // a copy, or one that was overtaken
    return discard(id, from, Part::kStaleRestore);
  }
  is_restored_ = false;  // what was here is being overwritten
  lose_backup();
  close_overtaken();
  from.shard = shard_;
  from.places.clear();
  for (const std::span<float> place : shard_->begin_restore(parameters_only)) {
    from.places.push_back(std::as_writable_bytes(place));
  }
  return into(from, Part::kRestore);
}

// Where every gradient counts a restore goes where the parameters before the newest are. So a reply
// that is still leaving is left alone if it is of the newest: not one of a state before this, nor
// of the step before, to a trainer that had pushed, was lost, and pulled on a new connection when
// another trainer's push made the next step. In the other modes a reply is a copy.
void RangeReplica::close_overtaken() {
  const bool borrows = shard_->config().every_gradient_counts();
  for (const TrainerRecord& record : trainers_.records()) {
    if (borrows && record.answered &&
        (record.answered->restores < restores_ || record.answered->step < shard_->step())) {
      out_.close(record.step);
    }
  }
  ++restores_;
}

BodyPlan RangeReplica::restore_came(ConnectionId id, Connection& from) {
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  if (shard != shard_) {
    return {.next = BodyPlan::Next::kStop};  // a newer chief has begun another run meanwhile
  }
  const net::FrameHeader& header = from.header;
  shard->finish_restore(header.step);
  if (dealer_) {
    dealer_->begin_step(activities());
  }
  generation_ = header.generation;
  is_restored_ = true;
  end_.begin_steps(/*expects_all=*/!shard->config().elastic());
  trainers_.need(0, now_);  // that they were too few before does not count
  count_needed();
  send_report();
  out_.info("holds parameters [" + std::to_string(shard->range().begin) + ", " +
            std::to_string(shard->range().end) + ") at step " + std::to_string(header.step) +
            ", generation " + std::to_string(net::number_of(generation_)));
  out_.send(id, net::Ack{header.request_id}.to_header());
  trainers_.nobody_is_done();
  fence_waiting();
  answer_waiting();
  return {};
}

}  // namespace disttf::roles
