#include "roles/ps/shell/range_meter.h"

#include "net/wire/messages.h"
#include "net/wire/replication.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

// A tensor's form; kControl for any other body.
Codec codec_of_body(const FrameHeader& header, bool in_place) {
  switch (header.kind) {
    case FrameKind::kPushPull:
    case FrameKind::kPush:
    case FrameKind::kParameters:
    case FrameKind::kRestore:
    case FrameKind::kFill:
    case FrameKind::kUpdate:
      return in_place ? Codec::kMemory : codec_of(header.flags);
    default:
      return Codec::kControl;
  }
}

}  // namespace

RangeMeter::RangeMeter(const Task& task, const RangeReplica& core) : core_(core) {
  if (task.meters != nullptr) {
    bytes_ = &task.meters->ps_bytes();
    meters_.emplace(task.meters->metrics(), core.state().index());
  }
}

RangeMeter::State RangeMeter::state() const noexcept {
  const Shard* const shard = core_.state().shard().get();
  if (shard == nullptr) {
    return {};
  }
  const ShardCounters& counters = shard->counters();
  return {.restores = core_.state().restores(),
          .step = shard->step(),
          .pushes = counters.pushes,
          .applied = counters.applied,
          .staleness = counters.staleness_sum};
}

void RangeMeter::before() noexcept {
  before_ = state();
  began_ = Clock::now();
}

void RangeMeter::after() noexcept {
  const State now = state();
  const Shard* const shard = core_.state().shard().get();
  if (shard == nullptr || now.restores != before_.restores || now.pushes < before_.pushes) {
    first_at_.reset();  // another state: earlier gradients of its step are dropped
    return;
  }
  if (now.step != before_.step) {
    // The call that completes a step includes its update.
    meters_->apply.observe(Clock::now() - began_);
    const bool is_async = !shard->config().sync_replicas;
    if (is_async) {
      meters_->staleness.observe(now.staleness - before_.staleness);
    } else if (!core_.host().is_backup()) {
      // A backup receives whole updates, so it does not wait for gradients.
      meters_->wait_for_last.observe(began_ - first_at_.value_or(began_));
    }
    first_at_.reset();
  } else if (now.pushes != before_.pushes && !first_at_) {
    first_at_ = began_;
  }
}

void RangeMeter::received(const FrameHeader& header, std::uint64_t bytes, bool in_place) noexcept {
  // A body in shared memory crosses no network.
  bytes_received_ += in_place ? 0 : net::kHeaderBytes + bytes;
  if (bytes_ != nullptr) {
    bytes_->received_header();
    bytes_->received(codec_of_body(header, in_place), bytes);
  }
}

void RangeMeter::sent(const FrameHeader& header, std::size_t bytes, bool in_place) noexcept {
  bytes_sent_ += in_place ? 0 : net::kHeaderBytes + bytes;
  if (bytes_ != nullptr) {
    bytes_->sent_frame(codec_of_body(header, in_place), bytes);
  }
}

void RangeMeter::copy_counters() noexcept {
  const Shard* const shard = core_.state().shard().get();
  meters_->generation.set(static_cast<double>(net::number_of(core_.state().generation())));
  meters_->trainers.set(static_cast<double>(core_.host().trainers.present()));
  copy_replication();
  if (shard == nullptr) {
    return;
  }
  const ShardCounters& counters = shard->counters();
  // Each shard counts from 0, but the counter of a metric must not fall.
  if (counters.pushes < newest_.pushes || counters.repeats < newest_.repeats ||
      counters.bad < newest_.bad) {
    counted_.applied += newest_.applied;  // of an earlier run
    counted_.dropped += newest_.dropped;
    counted_.repeats += newest_.repeats;
    counted_.bad += newest_.bad;
  }
  newest_ = counters;
  meters_->step.set(static_cast<double>(shard->step()));
  meters_->finished.set(shard->finished() ? 1 : 0);
  meters_->missing.set(shard->finished() ? 0 : static_cast<double>(shard->policy().lacks()));
  meters_->used.set(counted_.applied + counters.applied);
  meters_->dropped.set(counted_.dropped + counters.dropped);
  meters_->repeated.set(counted_.repeats + counters.repeats);
  meters_->bad.set(counted_.bad + counters.bad);
}

void RangeMeter::copy_replication() noexcept {
  const net::ReplicaRole replica_role = core_.host().role;
  meters_->primary.set(replica_role == net::ReplicaRole::kBackup ? 0 : 1);
  if (replica_role == net::ReplicaRole::kPrimary) {
    const BackupSender& backup = core_.host().backup;
    meters_->replicas.set(backup.is_complete() ? 2 : 1);
    meters_->lag.set(static_cast<double>(backup.lag()));
  } else {
    // A backup has no backup of its own: old values would be misleading.
    meters_->replicas.clear();
    meters_->lag.clear();
  }
  if (replica_role != net::ReplicaRole::kOnly) {
    const std::uint64_t view = core_.host().view.number.count;
    if (view > views_ && views_ != 0) {
      // The first view that is seen is no change.
      meters_->view_changes.add(view - views_);
    }
    views_ = view;
    meters_->view.set(static_cast<double>(view));
  }
}

}  // namespace disttf::roles
