#include "run/process/tensor_memory.h"

#include <algorithm>

#include "math/parameter_layout.h"
#include "net/wire/replication.h"
#include "run/outcome.h"
#include "run/process/machine.h"

namespace disttf::roles {
namespace {

// Elastic: a trainer that takes over micro-batches of others has room for these, too, up to this
// size.
constexpr std::size_t kSmallBytes = std::size_t{64} << 20U;
constexpr std::size_t kMostBytes = std::size_t{256} << 20U;

// The smallest memory that can be offered.
constexpr net::GradientMemory::Shape kNoGradients{.bytes = net::kLineBytes};

bool may_leave_snapshots(const Task& task, std::size_t bytes) {
  return task.transport != Transport::kTcp && bytes != 0 && bytes <= kSmallStateBytes;
}

std::size_t gradient_bytes(const RunConfig& config) {
  return math::layout_of(config.model).size() * sizeof(float);
}

std::size_t update_bytes(const UpdateShape& shape, std::size_t floats) {
  return net::padded_update_head_bytes(shape.trainers) + floats * sizeof(float);
}

// Copying a state costs as much as three updates of a backup with adam, and saves it all eight of
// these updates. A failover has to apply them.
constexpr std::size_t kUpdatesPerState = 8;

net::BodyRing::Shape updates_in_memory(const UpdateShape& shape) {
  const std::size_t bytes = update_bytes(shape, shape.plain);
  // Without slots updates are sent.
  if (bytes > kMostBytes) {
    return {.bytes = 0, .count = 0};
  }
  const std::size_t on_their_way = shape.is_sync ? 2 : std::min<std::size_t>(shape.trainers, 4);
  // With as many slots as there are headers, the primary need not wait for a backup that has not
  // polled yet.
  for (const std::size_t more : {net::kHeadersInMailbox, on_their_way}) {
    const net::BodyRing::Shape with_states{.bytes = bytes,
                                           .count = more + kUpdatesPerState - 1,
                                           .whole_bytes = update_bytes(shape, shape.with_state)};
    if (net::BodyRing::largest(with_states) <= kSmallBytes) {
      return with_states;
    }
  }
  return {.bytes = bytes, .count = on_their_way * bytes > kSmallBytes ? 1U : on_their_way};
}

// Of a ps's memory: one for each trainer, and the primary's behind them.
std::size_t slots_of_ps(std::size_t trainers) { return trainers + 1; }

}  // namespace

std::size_t gradients_in_memory(const RunConfig& config) {
  if (!config.elastic()) {
    return 1;
  }
  const std::size_t own_share = (config.micro_batches + config.trainers - 1) / config.trainers;
  // At least 1, since it divides below.
  const std::size_t bytes = std::max<std::size_t>(gradient_bytes(config), 1);
  const std::size_t room = std::max(std::min(own_share, kMostBytes / bytes), kSmallBytes / bytes);
  return std::clamp<std::size_t>(room, 1, config.micro_batches);
}

std::unique_ptr<net::GradientMemory> make_gradient_memory(const Task& task, std::size_t floats,
                                                          std::size_t count) {
  return task.transport == Transport::kTcp
             ? nullptr
             : net::GradientMemory::create({.bytes = floats * sizeof(float),
                                            .count = count,
                                            .channels = task.cluster.ps.size()});
}

std::shared_ptr<net::ParameterMemory> make_parameter_memory(const Task& task, std::size_t floats,
                                                            std::size_t trainers) {
  return task.transport == Transport::kTcp
             ? nullptr
             : net::ParameterMemory::create(floats * sizeof(float), slots_of_ps(trainers));
}

std::size_t slot_of_primary(std::size_t trainers) noexcept { return trainers; }

std::size_t updates_per_state(const UpdateShape& shape) {
  return updates_in_memory(shape).whole_bytes != 0 ? kUpdatesPerState : 1;
}

std::unique_ptr<net::BodyRing> make_update_slots(const Task& task, const UpdateShape& shape) {
  const net::BodyRing::Shape updates = updates_in_memory(shape);
  return task.transport == Transport::kTcp || updates.count == 0 ? nullptr
                                                                 : net::BodyRing::create(updates);
}

std::size_t most_of_primary(const UpdateShape& shape) {
  return net::BodyRing::largest(updates_in_memory(shape));
}

std::size_t least_of_primary(const UpdateShape& shape) { return update_bytes(shape, shape.plain); }

std::shared_ptr<net::ParameterMemory> make_snapshot_memory(const Task& task, std::size_t bytes) {
  return may_leave_snapshots(task, bytes)
             ? net::ParameterMemory::create(net::whole_pages(bytes), /*slots=*/0)
             : nullptr;
}

std::unique_ptr<net::GradientMemory> make_snapshot_reader(const Task& task, std::size_t bytes) {
  return may_leave_snapshots(task, bytes) ? net::GradientMemory::create(kNoGradients) : nullptr;
}

std::size_t most_of_snapshot(std::size_t bytes) noexcept {
  return net::whole_pages(net::ParameterMemory::largest(net::whole_pages(bytes), /*slots=*/0));
}

std::size_t most_of_snapshot_reader() noexcept {
  return net::GradientMemory::largest(kNoGradients);
}

std::size_t most_of_trainer(const RunConfig& config, std::size_t ps) {
  return net::GradientMemory::largest(
      {.bytes = gradient_bytes(config), .count = gradients_in_memory(config), .channels = ps});
}

// The range as often as Shard::arena_size() may need it: four times; or once, and once more for
// each trainer.
std::size_t most_of_ps(std::size_t floats, std::size_t trainers) noexcept {
  const std::size_t parts = std::max<std::size_t>(4, 1 + trainers);
  return net::ParameterMemory::largest(parts * net::whole_pages(floats * sizeof(float)),
                                       slots_of_ps(trainers));
}

void check_way_to(const Task& task, const std::string& ps, bool is_in_place) {
  // With --transport auto a ps on another machine is no error: data is sent to it.
  if (!is_in_place && task.transport == Transport::kSharedMemory) {
    throw Failure(kUsage, "--transport shm: no memory can be shared with " + ps +
                              "; allowed is auto, which then uses tcp");
  }
}

std::string describe_ways(std::size_t in_place, std::size_t ps) {
  return "shares memory with " + std::to_string(in_place) + " of " + std::to_string(ps) + " ps";
}

std::string describe_way_of_snapshots(const std::string& ps) {
  return "shares memory for snapshots with " + ps;
}

std::string describe_way_to_backup(std::size_t range) {
  return "shares memory with the backup of range " + std::to_string(range);
}

}  // namespace disttf::roles
