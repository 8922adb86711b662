#include "roles/chief/core/snapshot_coordinator.h"

#include <algorithm>
#include <utility>

namespace disttf::roles {
namespace {

// The pause before a changing state is requested again.
constexpr std::chrono::milliseconds kAskAgain{20};
// A ps whose disk hangs still sends heartbeats. Longer than any range takes on a reasonable disk;
// half of it would be too short for 8 GiB with adam on a slow one.
constexpr std::chrono::minutes kLongestWrite{10};

bool has_lost_its_state(const HostContact& contact) {
  return contact.kind == HostContact::Kind::kTurnedAway ||
         (contact.kind == HostContact::Kind::kWelcomed &&
          contact.replica_role == net::ReplicaRole::kOnly &&
          contact.state == net::ShardState::kEmpty);
}

}  // namespace

SnapshotAction SnapshotCoordinator::begin(const SnapshotRequest& request) {
  request_ = request;
  told_ = 0;
  files_.clear();
  failure_.reset();
  has_files_ = false;
  if (request_.now) {  // any host may have the state now
    disconnect();
  }
  return begin_with(0);
}

SnapshotAction SnapshotCoordinator::begin_with(std::size_t ps) {
  if (!is_connected_[ps]) {
    return connect(ps);
  }
  ps_ = ps;
  return FindSnapshot{.ps = ps_, .fetch = !options_.sharded};
}

SnapshotAction SnapshotCoordinator::connect(std::size_t ps) {
  ps_ = ps;
  replica_ = 0;
  is_lost_ = request_.now;  // a kept snapshot may be gone although the state is not
  return ConnectToHost{.ps = ps_, .replica = replica_};
}

SnapshotAction SnapshotCoordinator::connected(const HostContact& contact, TimePoint now) {
  is_lost_ = is_lost_ && has_lost_its_state(contact);
  // Without views, a range is served by its own ps only.
  const bool serves = contact.kind == HostContact::Kind::kWelcomed &&
                      (contact.replica_role == net::ReplicaRole::kPrimary ||
                       (contact.replica_role == net::ReplicaRole::kOnly && replica_ == 0));
  if (serves && !is_lost_) {
    return FindSnapshot{.ps = ps_, .fetch = !options_.sharded};
  }
  // The range's other host may be its primary.
  if (options_.replicated && replica_ == 0) {
    replica_ = 1;
    return ConnectToHost{.ps = ps_, .replica = replica_};
  }
  // A caller that asks only once restores a lost ps itself, so the loss is no failure for it.
  if (is_lost_ && request_.again) {
    return fail(options_.ps[ps_] + " is gone, and with it its part of the state");
  }
  return not_now(now);
}

SnapshotAction SnapshotCoordinator::found(std::optional<std::uint64_t> step, TimePoint now) {
  if (!step && is_connected_[ps_]) {  // it may have closed the channel, or no longer be the primary
    is_connected_[ps_] = false;
    return connect(ps_);
  }
  // If not every gradient counts, each ps makes steps of its own, which may differ.
  if (!step || (ps_ > 0 && *step != step_ && options_.same_step)) {
    return not_now(now);
  }
  is_connected_[ps_] = true;
  if (ps_ == 0) {
    step_ = *step;
  }
  if (ps_ + 1 < options_.ps.size()) {
    return begin_with(ps_ + 1);
  }
  // A random attempt: files of an earlier attempt at the same step must not be mixed in.
  id_ = {.step = step_, .attempt = engine_()};
  if (!options_.sharded) {
    return KeepState{.step = id_.step, .attempt = id_.attempt};
  }
  // The deadline may be TimePoint::max(), to which nothing can be added.
  // A ps whose disk hangs must not delay the next checkpoint for longer than kLongestWrite.
  written_by_ = request_.deadline - now < kLongestWrite ? request_.deadline : now + kLongestWrite;
  // Every ps is requested to write before the first is waited for, so all write at the same time.
  ps_ = 0;
  has_files_ = true;
  return RequestShardWrite{.ps = ps_, .id = id_};
}

SnapshotAction SnapshotCoordinator::told(const std::optional<std::string>& why_not) {
  // The ps that have begun are waited for in any case.
  if (why_not) {
    failure_ = Failure{.is_lost = true, .sentence = *why_not};
  } else if (++told_ < options_.ps.size()) {
    ps_ = told_;
    return RequestShardWrite{.ps = ps_, .id = id_};
  }
  ps_ = 0;
  return await_next();
}

// Waits for all ps that have received a request to write, so that none of them still writes into
// files that are about to be removed.
SnapshotAction SnapshotCoordinator::await_next() {
  if (ps_ < told_) {
    return AwaitWritten{.ps = ps_, .deadline = written_by_};
  }
  if (failure_) {
    return DiscardShards{id_};
  }
  return CommitShards{.id = id_, .files = std::move(files_)};
}

SnapshotAction SnapshotCoordinator::written(std::variant<ShardFile, ShardNotWritten> result) {
  if (auto* const file = std::get_if<ShardFile>(&result)) {
    files_.push_back(std::move(*file));
    // The first failure is reported.
  } else if (!failure_) {
    const auto& why = std::get<ShardNotWritten>(result);
    failure_ = Failure{.is_lost = why.is_lost, .sentence = why.sentence};
  }
  // In order of the ps, whichever finishes first: the files of all are needed.
  ++ps_;
  return await_next();
}

SnapshotAction SnapshotCoordinator::stored() {
  // The files belong to a checkpoint from here on, and must not be discarded.
  has_files_ = false;
  return SnapshotDone{.is_done = true, .step = step_};
}

SnapshotAction SnapshotCoordinator::failed(const std::string& sentence) {
  // What ps have written is removed before the failure is reported.
  if (std::exchange(has_files_, false)) {
    failure_ = Failure{.is_lost = false, .sentence = sentence};
    return DiscardShards{id_};
  }
  return fail(sentence);
}

SnapshotAction SnapshotCoordinator::discarded(TimePoint now) {
  has_files_ = false;
  // A caller that asks only once restores a lost ps itself.
  return failure_->is_lost && !request_.again ? not_now(now) : fail(failure_->sentence);
}

SnapshotAction SnapshotCoordinator::not_now(TimePoint now) {
  // Hosts may have changed their roles, so the next attempt connects again.
  disconnect();
  if (request_.now && request_.again && now + kAskAgain < request_.deadline) {
    return PauseSnapshot{now + kAskAgain};
  }
  return SnapshotDone{};
}

// The attempt begins anew with the same deadline.
SnapshotAction SnapshotCoordinator::paused() { return begin(request_); }

SnapshotAction SnapshotCoordinator::fail(const std::string& sentence) {
  disconnect();
  // The last save of a run is worth a second try: a storage server that began anew in its middle
  // has lost files that were written, and may well take them now.
  // Only once: a store that refuses again is not going to accept the same files.
  const bool is_tried_again = !request_.again && !std::exchange(has_failed_at_the_end_, true);
  return SnapshotDone{.is_done = !is_tried_again, .why_not = sentence};
}

bool SnapshotSchedule::wants(std::uint64_t step, bool is_busy, TimePoint now) {
  if ((save_steps_ != 0 && step % save_steps_ == 0) ||
      (save_secs_.count() != 0 && now >= next_time_)) {
    // A due snapshot stays due while another one is under way.
    is_due_ = true;
  }
  // A snapshot that is due waits for the previous one, so at most one is under way.
  if (!is_due_ || step >= train_steps_ || is_busy) {  // the last step is saved at the end
    return false;
  }
  is_due_ = false;
  next_time_ = now + save_secs_;
  return true;
}

}  // namespace disttf::roles
