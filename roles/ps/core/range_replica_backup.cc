#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "net/wire/log_messages.h"
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

// REQUIRES: there is one.
std::size_t first_of(const net::RankSet& ranks) {
  const auto place = std::ranges::find_if(ranks, [](std::uint64_t bits) { return bits != 0; });
  return static_cast<std::size_t>(place - ranks.begin()) * 64 +
         static_cast<std::size_t>(std::countr_zero(*place));
}

// Whether gradients of these trainers make an update, and there are such trainers.
bool may_update(const Shard& shard, const net::RankSet& ranks) {
  const RunConfig& config = shard.config();
  std::size_t count = 0;
  for (const std::uint64_t bits : ranks) {
    count += static_cast<std::size_t>(std::popcount(bits));
  }
  const std::size_t in_last = config.trainers % 64;
  const bool are_trainers = in_last == 0 || ranks.back() >> in_last == 0;
  const std::size_t wanted = !config.sync_replicas               ? 1
                             : config.replicas_to_aggregate != 0 ? config.replicas_to_aggregate
                                                                 : config.trainers;
  return are_trainers && count == wanted;
}

}  // namespace

BodyPlan RangeReplica::primary_header(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  if (header.kind == FrameKind::kPublish) {
    if (header.body_size > net::kMaxControlBodyBytes) {
      return refuse(id, from, kError, "no configuration is that large");
    }
    return into_bytes(from, Part::kConfig, header.body_size);
  }
  if (primary_ != id) {
    return refuse(id, from, kError, "another host is the primary of this range");
  }
  switch (header.kind) {
    case FrameKind::kFill:
      return fill_header(id, from);
    case FrameKind::kUpdate:
      return update_header(id, from);
    default:
      break;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  if (net::is_bodiless<net::Shutdown>(header)) {
    end(id);
    return {};
  }
  net::Complete complete;
  if (header.body_size != 0 || complete.from_header(header) || !filled_ ||
      complete.generation != generation_) {
    return refuse(id, from, kError, "no frame that a backup takes now");
  }
  complete_ = true;
  out_.send(id, net::Ack{header.request_id}.to_header());
  send_report();
  return {};
}

// A primary that was replaced in a newer view learns so from the chief.
BodyPlan RangeReplica::config_came(ConnectionId id, Connection& from) {
  net::PublishToBackup publish;
  if (const auto error = publish.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  const bool is_newer = standing_ == net::Standing::kPrimary ? publish.view > view_.number
                                                             : publish.view >= view_.number;
  if (has_ended() || !is_newer) {
    return refuse(id, from, kLostPeers, "that view of the range is an older one");
  }
  if (primary_ != id) {
    out_.close(primary_);
  }
  primary_ = 0;
  complete_ = false;
  filled_ = false;
  order_.learn(0, publish.view.chief);
  if (publish.view > view_.number) {
    view_ = {.number = publish.view, .primary = other_replica()};
    become_backup();
  }
  std::string json(reinterpret_cast<const char*>(from.bytes.data()), from.bytes.size());
  try {
    const RunConfig config = checked_config(json);
    if (json != config_json_ || !shard_) {
      make_shard(config, 0);
      config_json_ = std::move(json);
    }
  } catch (const std::exception& error) {  // what is wrong, or no memory
    return refuse(id, from, kError, error.what());
  }
  is_restored_ = false;
  end_.forget();
  primary_ = id;
  send_report();
  return {};
}

// ------------------------------------------------------------------------------- the whole state

BodyPlan RangeReplica::fill_header(ConnectionId id, Connection& from) {
  filled_ = false;
  complete_ = false;
  from.shard = shard_;
  net::Fill fill;
  if (fill.from_header(from.header) || from.header.body_size < net::kFillHeadBytes) {
    return refuse(id, from, kError, "not the state of a range");
  }
  return into_bytes(from, Part::kFillHead, net::kFillHeadBytes);
}

BodyPlan RangeReplica::fill_head_came(ConnectionId id, Connection& from) {
  net::FillHead& head = from.fill;
  if (net::decode(from.bytes, head)) {
    return refuse(id, from, kError, "not the state of a range");
  }
  Shard& shard = *from.shard;
  const std::size_t tensor_bytes = shard.range().size() * sizeof(float);
  const std::size_t plain = shard.state_size() / std::max<std::size_t>(shard.range().size(), 1);
  from.with_previous = head.tensors == plain + 1 && shard.config().every_gradient_counts();
  if (head.trainers != trainers_.size() || (head.tensors != plain && !from.with_previous) ||
      from.header.range_begin != shard.range().begin ||
      from.header.body_size != net::kFillHeadBytes + head.trainers * net::kFillTrainerBytes +
                                   head.tensors * tensor_bytes) {
    return refuse(id, from, kError, "the state of another range");
  }
  return into_bytes(from, Part::kFillTrainers, head.trainers * net::kFillTrainerBytes);
}

BodyPlan RangeReplica::fill_trainers_came(ConnectionId id, Connection& from) {
  const auto& counters = from.fill.counters;
  from.identity = {.step = from.header.step,
                   .counters = {.pushes = counters[0],
                                .applied = counters[1],
                                .repeats = counters[2],
                                .dropped = counters[3],
                                .staleness_sum = counters[4],
                                .staleness_max = counters[5]},
                   .trainers = {}};
  const std::span<const std::byte> bytes = from.bytes;
  for (std::size_t rank = 0; rank < from.fill.trainers; ++rank) {
    net::FillTrainer trainer;
    if (net::decode(bytes.subspan(rank * net::kFillTrainerBytes, net::kFillTrainerBytes),
                    trainer)) {
      return {.next = BodyPlan::Next::kStop};
    }
    from.identity.trainers.push_back({.incarnation = trainer.incarnation,
                                      .last_sequence = trainer.last_sequence,
                                      .clock = trainer.clock,
                                      .used = trainer.used});
  }
  if (primary_ != id) {
    return {.next = BodyPlan::Next::kStop};
  }
  from.places.clear();
  for (const std::span<float> place : from.shard->begin_fill(from.with_previous)) {
    from.places.push_back(std::as_writable_bytes(place));
  }
  return into(from, Part::kFillTensors);
}

BodyPlan RangeReplica::fill_came(ConnectionId id, Connection& from) {
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  if (primary_ != id) {
    return {.next = BodyPlan::Next::kStop};
  }
  shard->finish_fill(from.identity, from.with_previous);
  for (std::size_t rank = 0; rank < from.identity.trainers.size(); ++rank) {
    order_.learn(rank, from.identity.trainers[rank].incarnation);
  }
  generation_ = from.header.generation;
  lineage_ = from.fill.lineage;
  filled_ = true;
  out_.info("holds a copy of range " + std::to_string(index_) + " at step " +
            std::to_string(from.header.step) + ", generation " +
            std::to_string(net::number_of(generation_)));
  out_.send(id, net::Ack{from.header.request_id}.to_header());
  return {};
}

// ------------------------------------------------------------------------------------ one update

BodyPlan RangeReplica::update_header(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  net::Update update;
  if (const auto error = update.from_header(header)) {
    return refuse(id, from, kError, error.message());
  }
  if (!filled_ || update.generation != generation_ || update.range_begin != shard_->range().begin ||
      header.body_size !=
          net::update_head_bytes(trainers_.size()) + shard_->range().size() * sizeof(float)) {
    return refuse(id, from, kError, "an update of another state");
  }
  from.shard = shard_;
  return into_bytes(from, Part::kUpdateHead, net::update_head_bytes(trainers_.size()));
}

BodyPlan RangeReplica::update_head_came(ConnectionId id, Connection& from) {
  const Shard& shard = *from.shard;
  if (net::decode(from.bytes, from.update) || !may_update(shard, from.update.trainers) ||
      shard.finished() || (shard.config().sync_replicas && from.header.step != shard.step())) {
    return refuse(id, from, kError, "an update that does not follow the last one");
  }
  return into(from, Part::kUpdate, std::as_writable_bytes(from.shard->update_inbox()));
}

BodyPlan RangeReplica::update_came(ConnectionId id, Connection& from) {
  const std::shared_ptr<Shard> shard = std::move(from.shard);
  if (primary_ != id) {
    return {.next = BodyPlan::Next::kStop};
  }
  net::Update update;
  if (update.from_header(from.header)) {
    return {.next = BodyPlan::Next::kStop};
  }
  shard->take_update({.trainer = first_of(from.update.trainers),
                      .incarnation = from.update.incarnation,
                      .step = update.step,
                      .sequence = update.push},
                     from.update.trainers);
  // Async: this host would take a push of a process before it for a new one, not for a repeat.
  order_.learn(first_of(from.update.trainers), from.update.incarnation);
  out_.send(id, net::Ack{from.header.request_id}.to_header());
  return {};
}

}  // namespace disttf::roles
