// What is checked of a simulated ps: its core's state after each call, and the frames that it
// sends.
#include <algorithm>

#include "net/memory/shared_memory.h"
#include "net/wire/messages.h"
#include "tests/sim/ps_process.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::RangeReplica;

void PsProcess::observe() {
  for (std::size_t replica = 0; is_alive() && replica < core().range_count(); ++replica) {
    observe(replica);
  }
}

// Reports the replica's changes to the checkers.
void PsProcess::observe(std::size_t replica) {
  const RangeReplica& range_core = core().range(replica);
  Hosted& range = hosted_[replica];
  roles::Shard* const shard = range_core.state().shard().get();
  const net::ReplicaRole replica_role = range_core.host().role;
  const bool holds = range_core.host().holds_state();
  if (replica_role != range.replica_role) {
    if (replica_role == net::ReplicaRole::kPrimary && holds && range.held) {
      checks_.host_was_promoted(range_core.state().index(),
                                {range_core.state().lineage(), range_core.state().generation()},
                                range_core.host().view.number, shard->step());
    }
    range.replica_role = replica_role;
    ++range.replica_roles;
  }
  // A host without a state forgets the views of a chief that was lost before its run began.
  const bool forgets =
      checks_.may_differ() && !holds && range_core.host().view.number == net::ViewNumber{};
  if (range_core.host().view.number < range.view && !forgets) {
    world_.violate(name() + " went back from view " + std::to_string(range.view.count) +
                   " of range " + std::to_string(range_core.state().index()) + " to view " +
                   std::to_string(range_core.host().view.number.count));
  }
  if (range_core.host().view.number != range.view) {
    range.view = range_core.host().view.number;
    checks_.witnesses().hears(task_.incarnation, range_core.state().index(), range.view);
    if (replica_role == net::ReplicaRole::kPrimary && holds) {
      checks_.host_goes_on(name(), range_core.state().index(),
                           {range_core.state().lineage(), range_core.state().generation()},
                           range.view, shard->step(), shard->parameters());
    }
    if (range_core.host().view.paired) {
      world_.mark(Mark::kPair);
    }
  }
  const bool was_behind = std::exchange(range.is_behind, holds && shard->is_behind());
  const bool has_caught_up = holds && was_behind && !range.is_behind && range.step == shard->step();
  if (has_caught_up && replica_role == net::ReplicaRole::kPrimary) {
    world_.mark(Mark::kCaughtUp);
  }
  if (holds && (range.step != shard->step() || has_caught_up ||
                range.generation != range_core.state().generation())) {
    range.step = shard->step();
    if (range.generation != range_core.state().generation()) {
      check_none_waits(range_core);
      range.is_torn = false;
    }
    range.generation = range_core.state().generation();
    if (replica_role != net::ReplicaRole::kOnly) {
      checks_.witnesses().has_seen(task_.incarnation, range_core.state().index(),
                                   {range_core.state().lineage(), range.generation}, range.step);
    }
    if (!range.is_behind && (!range.is_torn || !is_replaced())) {
      checks_.host_made_step(name(), range_core.state().index(),
                             {range_core.state().lineage(), range.generation}, range.view,
                             range.step, shard->parameters(),
                             replica_role == net::ReplicaRole::kBackup || was_behind);
    }
    if (replica_role != net::ReplicaRole::kBackup) {
      // A host that was a backup meanwhile may have lost a step that was never reported.
      checks_.host_is_at(name(), range_core.state().index(),
                         task_.incarnation * 256 + range.replica_roles, range.generation,
                         range.step);
    }
  }
  range.held = holds;
}

// The shell carries out all effects before it waits.
void PsProcess::check_effects() {
  std::size_t left = 0;
  server_->core().drain([&](std::size_t /*replica*/, auto& /*effect*/) { ++left; },
                        [&](auto& /*effect*/) { ++left; });
  if (left != 0) {
    violate("waits with " + std::to_string(left) + " effects of its core not carried out");
  }
  if (const auto control = std::exchange(control_, std::nullopt)) {
    check_not_replaced(control->first, control->second);
  }
}

void PsProcess::header_was_read(const PsConnection& from, const FrameHeader& header) {
  if (from.hello().purpose == net::ChannelPurpose::kControl) {
    control_ = {from.hello(), header.generation};
  }
}

// Trainers name a generation only once all ps hold it. A ps that does not hold it was replaced, and
// must end.
void PsProcess::check_not_replaced(const net::Hello& from, net::Generation generation) {
  for (std::size_t replica = 0; replica < core().range_count(); ++replica) {
    const RangeReplica& range = core().range(replica);
    if (range.host().role != net::ReplicaRole::kBackup && range.host().holds_state() &&
        !range.host().is_finishing() && generation > range.state().generation() &&
        range.host().trainers.records()[task_.cluster.rank_of(from.from)].incarnation ==
            from.incarnation) {
      violate("goes on with generation " +
              std::to_string(net::number_of(range.state().generation())) +
              " though it has received " + std::to_string(net::number_of(generation)));
    }
  }
}

// Peers must not be given the memory of an earlier shard.
void PsProcess::check_memory(std::size_t range, const net::InPlaceMemory& memory) {
  roles::Shard* const shard = core().range(range).state().shard().get();
  if (shard != nullptr && !shard->is_behind() &&
      !net::lies_in(std::as_bytes(shard->parameters()), memory.parameters())) {
    violate("gives a peer memory that is not its shard's");
  }
}

bool PsProcess::is_elastic(std::size_t range) const {
  const auto* const shard = core().range(range).state().shard().get();
  return shard != nullptr && shard->config().elastic();
}

// A request that waits for a step or for the end must be of the current generation.
void PsProcess::check_none_waits(const RangeReplica& range) {
  for (const roles::TrainerRecord& record : range.host().trainers.records()) {
    if (record.waiting && net::header_of(record.waiting->request).generation != 0 &&
        net::header_of(record.waiting->request).generation != range.state().generation()) {
      world_.violate(
          name() + " keeps a trainer waiting for a " +
          std::string(name_of(net::header_of(record.waiting->request).kind)) + " of generation " +
          std::to_string(net::number_of(net::header_of(record.waiting->request).generation)) +
          ", which is no more: it holds " +
          std::to_string(net::number_of(range.state().generation())));
    }
  }
}

// A gradient must be answered with parameters that contain it, or with FENCED.
void PsProcess::check_answer(const FrameHeader& answer, const FrameHeader& push) {
  if (push.request_id == answer.request_id && push.generation != answer.generation) {
    world_.violate(name() + " answers a push of generation " +
                   std::to_string(net::number_of(push.generation)) + " with parameters of " +
                   std::to_string(net::number_of(answer.generation)));
  }
}

// Async: a trainer that is answered may be ahead of every other present trainer by --max_staleness
// at most.
void PsProcess::check_staleness(const RangeReplica& range, const FrameHeader& answer,
                                const net::FrameHeader& push) {
  const roles::Shard& shard = *range.state().shard();
  const std::optional<std::uint64_t> bound = shard.config().max_staleness;
  const bool is_over = (answer.flags & net::kFlagFinished) != 0 || shard.finished();
  if (shard.config().sync_replicas || !bound || is_over || push.request_id != answer.request_id) {
    return;
  }
  for (std::size_t rank = 0; rank < range.host().trainers.records().size(); ++rank) {
    const std::uint64_t clock = shard.policy().counts_from(rank);
    const roles::TrainerRecord& other = range.host().trainers.records()[rank];
    // A process that has just connected does not count while its predecessor leaves.
    const bool takes_part = other.present() && (other.answered || other.waiting);
    if (takes_part && push.sequence > clock + *bound) {
      world_.violate(name() + " answers push " + std::to_string(push.sequence) +
                     " though trainer " + std::to_string(rank) + " is at " + std::to_string(clock) +
                     ", and --max_staleness is " + std::to_string(*bound) + " (invariant 22)");
    }
  }
}

bool PsProcess::may_send(const PsConnection& to, const FrameHeader& header) {
  switch (header.kind) {
    case FrameKind::kFenced:
      mark(Mark::kFence);
      return true;
    case FrameKind::kWork:
      mark(Mark::kWork);
      return true;
    case FrameKind::kFill:
      mark(Mark::kFill);
      return true;
    case FrameKind::kParameters:
      break;
    default:
      return true;
  }
  const RangeReplica& range = core().range(to.range());
  check_answer(header, to.push());
  check_staleness(range, header, to.push());
  if (range.host().is_backup()) {
    violate("answers though another host is the primary (invariant 7): range " +
            std::to_string(range.state().index()) + ", step " + std::to_string(header.step));
    return false;
  }
  if (range.host().role == net::ReplicaRole::kPrimary && task_.cluster.ps.size() > 1) {
    std::optional<PushName> push;
    if (to.push().request_id == header.request_id) {
      push = {.incarnation = to.hello().incarnation, .sequence = to.push().sequence};
    }
    const StateName state{range.state().lineage(), range.state().generation()};
    checks_.host_answers(range.state().index(), state, range.host().view, header.step, push);
    if (range.state().shard()->config().sync_replicas) {
      checks_.host_acknowledges(name(), range.state().index(), state, range.host().view.number,
                                header.step);
    }
  }
  return true;
}

}  // namespace disttf::sim
