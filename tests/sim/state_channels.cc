#include "tests/sim/state_channels.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "net/wire/snapshot_messages.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;

namespace {

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void StateChannels::answer(ConnectionId id, FrameKind kind, const FrameHeader& to, Bytes body) {
  network_.send(id, ps_, FrameHeader{.kind = kind, .request_id = to.request_id}, std::move(body));
}

void StateChannels::header(ConnectionId id, roles::RangeReplica& range, const FrameHeader& header) {
  if (header.kind == FrameKind::kWriteSnapshotShard) {
    orders_[id] = header;
    return;
  }
  net::SnapshotShardRequest request;
  if (request.from_header(header)) {
    world_.violate(ps_.name() + " received a snapshot request that it rejects");
    return;
  }
  const bool is_there = range.state().find_snapshot(request).has_value();
  const std::shared_ptr<const roles::SnapshotShard> snapshot =
      is_there ? range.state().kept_snapshot(request.name, request.generation) : nullptr;
  if (!snapshot) {
    answer(id, FrameKind::kAck, header);
    return;
  }
  if (snapshot->sequence != header.sequence) {
    world_.violate(ps_.name() + " gives cut " + std::to_string(snapshot->sequence) + ", not the " +
                   std::to_string(header.sequence) + " that was asked for");
  }
  Frame reply{.header = {.kind = FrameKind::kSnapshotShard,
                         .request_id = header.request_id,
                         .step = snapshot->step,
                         .sequence = snapshot->sequence,
                         .range_begin = range.state().shard()->range().begin,
                         .generation = range.state().generation()}};
  if (header.kind == FrameKind::kGetSnapshotShard) {
    reply.body = std::as_bytes(snapshot->values.span());
    reply.owner = snapshot;
  }
  network_.send(id, ps_, std::move(reply));
}

void StateChannels::body(ConnectionId id, roles::RangeReplica& range,
                         std::span<const std::byte> body) {
  const auto found = orders_.find(id);
  if (found == orders_.end()) {
    return;
  }
  const FrameHeader header = found->second;
  orders_.erase(found);
  net::WriteSnapshotShard order;
  if (net::decode(body, order) || order.shard != range.state().index() || disk_ == nullptr) {
    world_.violate(ps_.name() + " was requested to write a shard that it cannot write");
    return;
  }
  std::shared_ptr<const roles::SnapshotShard> snapshot =
      range.state().kept_snapshot(header.sequence, header.generation);
  if (!snapshot) {
    answer(id, FrameKind::kAck, header);
    return;
  }
  Writing writing{.id = id,
                  .header = header,
                  .attempt = order.attempt,
                  .shard = order.shard,
                  .range = range.state().shard()->range(),
                  .optimizer = range.state().shard()->storage().state_names(),
                  .snapshot = std::move(snapshot)};
  if (writing_.contains(order.shard)) {  // the order of a chief that is gone
    world_.mark(Mark::kWriterAwaited);
    waiting_[order.shard].push_back(std::move(writing));
  } else {
    begin(std::move(writing));
  }
}

void StateChannels::begin(Writing order) {
  const std::size_t shard = order.shard;
  const std::uint64_t bits = world_.draw(Draw::kDisk, ps_.task().incarnation, ++writes_);
  const std::chrono::microseconds time(100 + bits % 20'000);
  writing_[shard] = std::move(order);
  world_.schedule(world_.now() + ((bits >> 32U) % 64 == 0 ? 200 * time : time), ps_, written_,
                  shard);
}

void StateChannels::written(std::size_t range) {
  const auto found = writing_.find(range);
  const Writing order = std::move(found->second);
  writing_.erase(found);
  std::vector<Writing>& waiting = waiting_[range];
  std::erase_if(waiting, [this](const Writing& each) { return !network_.is_open(each.id, ps_); });
  if (!waiting.empty()) {
    begin(std::move(waiting.front()));
    waiting.erase(waiting.begin());
  }
  try {
    const roles::ShardFile file = write(order);
    answer(order.id, FrameKind::kWritten, order.header, bytes_of(roles::to_json(file)));
  } catch (const std::exception& error) {
    answer(order.id, FrameKind::kNotWritten, order.header, bytes_of(error.what()));
  }
}

roles::ShardFile StateChannels::write(const Writing& order) {
  const std::size_t size = order.range.size();
  const std::span<const float> values = order.snapshot->values.span();
  roles::ShardView view{.range = order.range, .parameters = values.first(size), .optimizer = {}};
  for (std::size_t tensor = 0; tensor < order.optimizer.size(); ++tensor) {
    view.optimizer.push_back(
        {.name = order.optimizer[tensor], .values = values.subspan((tensor + 1) * size, size)});
  }
  disk_->is_written(order.header.step, view);
  roles::ShardFile file;
  disk_->use([&] {
    file =
        disk_->open().write_shard({.step = order.header.step, .attempt = order.attempt},
                                  order.shard, ps_.task().cluster.ps.size(), view, disk_->layout());
  });
  disk_->shard_was_reported({.step = order.header.step, .attempt = order.attempt}, file.name);
  return file;
}

}  // namespace disttf::sim
