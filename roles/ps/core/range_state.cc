#include "roles/ps/core/range_state.h"

#include <stdexcept>
#include <utility>

#include "math/kernels.h"
#include "math/model.h"
#include "run/wire_format.h"

namespace disttf::roles {

using net::FrameHeader;

RangeState::RangeState(const Task& task, std::size_t index, std::size_t threads,
                       MakeArena make_arena, OnUpdate on_update)
    : task_(task),
      index_(index),
      threads_(threads),
      make_arena_(std::move(make_arena)),
      on_update_(std::move(on_update)),
      lineage_(task.incarnation) {}

// ----------------------------------------------------------------------------------------- a run

RunConfig RangeState::checked_config(const std::string& json,
                                     std::optional<bool> is_replicated) const {
  RunConfig config = run_config_from_json(json);
  if (config.trainers != trainers()) {
    throw std::invalid_argument("the chief counts " + std::to_string(config.trainers) +
                                " trainers, " + self_text() + " " + std::to_string(trainers()));
  }
  validate(config);
  if (const auto why = missing_isa(config, math::supported_isas())) {
    throw std::invalid_argument(*why);
  }
  if ((config.ps_replicas > 1) != is_replicated.value_or(config.ps_replicas > 1)) {
    throw std::invalid_argument("the chief has --ps_replicas " +
                                std::to_string(config.ps_replicas) + ", a run with another " +
                                "number is under way here");
  }
  return config;
}

void RangeState::begin_run(const RunConfig& config, std::string json) {
  // Cleared first: if make_shard() throws, this host must not claim a configuration.
  config_json_ = std::make_shared<const std::string>();
  configuration_ = 0;
  best_ = {};
  drop_shard();  // its memory is needed for the new one
  // Taken even if it does not fit, so that its memory is released.
  const std::shared_ptr<Shard> prepared = std::exchange(prepared_, nullptr);
  if (prepared && prepared_json_ == json) {
    shard_ = prepared;
  } else {
    shard_ = make_shard(config, make_arena_ ? make_arena_(config, range_of(config)) : Arena{});
  }
  if (config.elastic()) {  // min_workers does not count the chief task, which trains as well
    scheduler_.emplace(trainers(), config.min_workers + task_.cluster.chief.size());
  }
  // Without replicas there is no hook, so a step need not form the whole sum for a copy.
  if (config.ps_replicas > 1) {
    shard_->on_update(on_update_);
  }
  config_json_ = std::make_shared<const std::string>(std::move(json));
  configuration_ = configuration_id(*config_json_);
}

std::shared_ptr<Shard> RangeState::make_shard(const RunConfig& config, Arena arena) const {
  return std::make_shared<Shard>(config, range_of(config), threads_, std::move(arena));
}

math::Range RangeState::range_of(const RunConfig& config) const {
  return math::shard_range(math::layout_of(config.model).size(), index_, task_.cluster.ps.size());
}

void RangeState::drop_shard() noexcept {
  shard_.reset();
  scheduler_.reset();
  is_restored_ = false;
}

// --------------------------------------------------------------------------------------- a state

std::vector<std::span<float>> RangeState::begin_restore(bool parameters_only) {
  // Counted at the beginning, where the old state ends; each answer keeps the count of its time.
  ++restores_;
  return shard_->begin_restore(parameters_only);
}

void RangeState::finish_restore(std::uint64_t step, net::Generation generation) {
  shard_->finish_restore(step);
  generation_ = generation;
  is_restored_ = true;
}

void RangeState::took_copy(net::Generation generation, std::uint64_t lineage) noexcept {
  generation_ = generation;
  lineage_ = lineage;
}

void RangeState::drop_for(net::Generation result) noexcept {
  drop_shard();
  generation_ = result;
}

void RangeState::forget() noexcept {
  drop_shard();
  config_json_ = std::make_shared<const std::string>();
  configuration_ = 0;
  best_ = {};
  // A state that is made after this is of this process, not of the primary that filled a copy.
  lineage_ = task_.incarnation;
}

// --------------------------------------------------------------------------------------- queries

std::size_t RangeState::trainers_needed() const {
  if (!shard_) {
    return trainers();
  }
  // Async: a single trainer can go on alone.
  if (!shard_->config().sync_replicas || shard_->finished()) {
    return 0;
  }
  return scheduler_ ? scheduler_->least() : shard_->policy().wanted();
}

std::optional<std::string> RangeState::fault_in(const FrameHeader& header) const {
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin || header.body_size != range.size() * sizeof(float)) {
    return "a tensor of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not the range of " + self_text() + ": " +
           std::to_string(range.size() * sizeof(float)) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

std::optional<std::string> RangeState::gradient_fault(const FrameHeader& header,
                                                      bool is_in_place) const {
  const WireFormat& wire = shard_->storage().wire();
  const std::uint16_t flags = gradient_flags(wire);
  const bool are_floats = (header.flags & net::kTensorForms) == 0;
  // A gradient in shared memory consists of floats. That of an empty range does, too, and has no
  // bytes that would lie there.
  const bool may_be_floats = is_in_place || header.body_size == 0;
  if ((header.flags & net::kTensorForms) != flags && !(may_be_floats && are_floats)) {
    return "a gradient in another form than --wire_dtype and --compress of the run say";
  }
  if (are_floats) {
    return fault_in(header);
  }
  const math::Range range = shard_->range();
  if (header.range_begin != range.begin ||
      !is_gradient_size(wire, range.size(), header.body_size)) {
    return "a gradient of " + std::to_string(header.body_size) + " bytes from float " +
           std::to_string(header.range_begin) + " on is not one of the range of " + self_text() +
           ": " + std::to_string(longest_gradient(wire, range.size())) + " bytes from float " +
           std::to_string(range.begin);
  }
  return std::nullopt;
}

std::optional<SnapshotShardName> RangeState::find_snapshot(
    const net::SnapshotShardRequest& request) {
  // The request gives the name to the current state, so a chief can ask without a push before it.
  if (request.now && is_of(request.generation)) {
    shard_->want_snapshot(request.name, shard_->step());
  }
  return keeps_snapshot(request.name, request.generation) ? shard_->snapshot_name() : std::nullopt;
}

std::shared_ptr<const SnapshotShard> RangeState::kept_snapshot(std::uint64_t name,
                                                               net::Generation generation) const {
  return keeps_snapshot(name, generation) ? shard_->snapshot() : nullptr;
}

bool RangeState::keeps_snapshot(std::uint64_t name, net::Generation generation) const {
  const std::optional<SnapshotShardName> snapshot = shard_ ? shard_->snapshot_name() : std::nullopt;
  // A restore drops snapshots, and a name may be used again after it: the generation must match.
  return snapshot && generation == generation_ && name == snapshot->sequence;
}

}  // namespace disttf::roles
