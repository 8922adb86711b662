// Applies the effects of a simulated ps's core, and checks each.
#include <algorithm>
#include <limits>

#include "net/memory/header_mailbox.h"
#include "net/wire/messages.h"
#include "tests/sim/ps_process.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::RangeReplica;
using std::chrono::milliseconds;
using std::chrono::seconds;

void PsProcess::do_effects() {
  const auto of_range = [this](std::size_t replica, auto& effect) {
    if (is_alive()) {
      apply(replica, effect);
    }
  };
  core_->drain(of_range, [this](auto& effect) { apply(effect); });
  for (std::size_t replica = 0; is_alive() && replica < core_->range_count(); ++replica) {
    look(replica);
  }
}

// Reports the replica's changes to the checkers.
void PsProcess::look(std::size_t replica) {
  const RangeReplica& core = core_->range(replica);
  Hosted& range = hosted_[replica];
  roles::Shard* const shard = core.state().shard().get();
  const net::ReplicaRole replica_role = core.host().role;
  const bool holds = core.host().holds_state();
  if (replica_role != range.replica_role) {
    if (replica_role == net::ReplicaRole::kPrimary && holds && range.held) {
      checks_.host_was_promoted(core.state().index(),
                                {core.state().lineage(), core.state().generation()},
                                core.host().view.number, shard->step());
    }
    range.replica_role = replica_role;
    ++range.replica_roles;
  }
  // A host without a state forgets the views of a chief that was lost before its run began.
  const bool forgets =
      checks_.may_differ() && !holds && core.host().view.number == net::ViewNumber{};
  if (core.host().view.number < range.view && !forgets) {
    world_.violate(name() + " went back from view " + std::to_string(range.view.count) +
                   " of range " + std::to_string(core.state().index()) + " to view " +
                   std::to_string(core.host().view.number.count));
  }
  if (core.host().view.number != range.view) {
    range.view = core.host().view.number;
    checks_.witnesses().hears(task_.incarnation, core.state().index(), range.view);
    if (replica_role == net::ReplicaRole::kPrimary && holds) {
      checks_.host_goes_on(name(), core.state().index(),
                           {core.state().lineage(), core.state().generation()}, range.view,
                           shard->step(), shard->parameters());
    }
    if (core.host().view.paired) {
      world_.mark(Mark::kPair);
    }
  }
  const bool was_behind = std::exchange(range.is_behind, holds && shard->is_behind());
  const bool has_caught_up = holds && was_behind && !range.is_behind && range.step == shard->step();
  if (has_caught_up && replica_role == net::ReplicaRole::kPrimary) {
    world_.mark(Mark::kCaughtUp);
  }
  if (holds && (range.step != shard->step() || has_caught_up ||
                range.generation != core.state().generation())) {
    range.step = shard->step();
    if (range.generation != core.state().generation()) {
      check_none_waits(core);
      range.is_torn = false;
    }
    range.generation = core.state().generation();
    if (replica_role != net::ReplicaRole::kOnly) {
      checks_.witnesses().has_seen(task_.incarnation, core.state().index(),
                                   {core.state().lineage(), range.generation}, range.step);
    }
    if (!range.is_behind && (!range.is_torn || !is_replaced())) {
      checks_.host_made_step(
          name(), core.state().index(), {core.state().lineage(), range.generation}, range.view,
          range.step, shard->parameters(), replica_role == net::ReplicaRole::kBackup || was_behind);
    }
    if (replica_role != net::ReplicaRole::kBackup) {
      // A host that was a backup meanwhile may have lost a step that was never reported.
      checks_.host_is_at(name(), core.state().index(),
                         task_.incarnation * 256 + range.replica_roles, range.generation,
                         range.step);
    }
  }
  range.held = holds;
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
void PsProcess::check_answer(const FrameHeader& answer, ConnectionId to) {
  const auto found = served_.find(to);
  if (found == served_.end()) {
    return;
  }
  const FrameHeader& push = found->second.push;
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

void PsProcess::apply(std::size_t replica, roles::SendFrame& effect) {
  const RangeReplica& range = core_->range(replica);
  if (!network_.is_open(effect.to, *this)) {
    return;
  }
  switch (effect.header.kind) {
    case FrameKind::kFenced:
      world_.mark(Mark::kFence);
      break;
    case FrameKind::kWork:
      world_.mark(Mark::kWork);
      break;
    case FrameKind::kParameters:
      check_answer(effect.header, effect.to);
      if (const auto found = served_.find(effect.to); found != served_.end()) {
        check_staleness(range, effect.header, found->second.push);
      }
      if (range.host().is_backup()) {
        world_.violate(
            name() + " answers though another host is the primary (invariant 7): range " +
            std::to_string(range.state().index()) + ", step " + std::to_string(effect.header.step));
        return;
      }
      if (range.host().role == net::ReplicaRole::kPrimary && task_.cluster.ps.size() > 1) {
        const Served& served = served_.at(effect.to);
        std::optional<PushName> push;
        if (served.push.request_id == effect.header.request_id) {
          push = {.incarnation = served.hello.incarnation, .sequence = served.push.sequence};
        }
        checks_.host_answers(range.state().index(),
                             {range.state().lineage(), range.state().generation()},
                             range.host().view, effect.header.step, push);
      }
      if (range.host().role == net::ReplicaRole::kPrimary && task_.cluster.ps.size() > 1 &&
          range.state().shard()->config().sync_replicas) {
        checks_.host_acknowledges(name(), range.state().index(),
                                  {range.state().lineage(), range.state().generation()},
                                  range.host().view.number, effect.header.step);
      }
      break;
    default:
      break;
  }
  Frame frame{.header = effect.header, .is_torn = hosted_[replica].is_torn};
  const bool may_be_slow =
      range.state().shard() != nullptr && range.state().shard()->config().elastic();
  if (effect.owner && !may_be_slow) {
    frame.body = effect.borrowed;
    frame.owner = std::move(effect.owner);
    frame.sum = sum_of(frame.body);
  } else if (!effect.borrowed.empty() || !effect.body.empty()) {
    // Elastic: the ps does not wait for a trainer that receives slowly, whose parameters may then
    // be torn: its gradients would be too late to count. The simulation sends a copy instead.
    const auto bytes = std::make_shared<Bytes>(std::move(effect.body));
    bytes->insert(bytes->end(), effect.borrowed.begin(), effect.borrowed.end());
    if (effect.header.kind == FrameKind::kUpdate &&
        task_.transport == roles::Transport::kSharedMemory) {
      frame.in_place = {.bytes = *bytes, .owner = bytes};
    } else {
      frame.body = *bytes;
      frame.owner = bytes;
    }
  }
  const bool is_to_backup = effect.to == range.host().backup.connection();
  const bool is_handed_off = is_to_backup && leave(effect.to, frame);
  const FrameHeader header = frame.header;
  network_.send(effect.to, *this, std::move(frame));
  if (is_handed_off) {
    world_.mark(Mark::kHandedOff);
    core_->gave(static_cast<std::uint8_t>(replica), effect.to, header.request_id, now());
  }
}

bool PsProcess::leave(ConnectionId to, Frame& update) {
  LeftUpdates& left = network_.left_updates(to);
  const FrameHeader& header = update.header;
  if (update.in_place.bytes.empty()) {
    if (!net::is_bodiless<net::Heartbeat>(header)) {
      left.unread = header.kind == FrameKind::kUpdate ? header.request_id
                                                      : std::numeric_limits<std::uint64_t>::max();
    }
    return false;
  }
  if (left.unread || left.frames.size() >= net::kHeadersInMailbox) {
    left.unread = header.request_id;
    return false;
  }
  update.is_left = true;
  update.header.body_size = update.in_place.bytes.size();
  left.frames.push_back(update);
  return left.is_taken;
}

void PsProcess::apply(const roles::CloseConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    network_.close(effect.id, *this, /*finish=*/false);
    schedule(now(), kClosedHere, effect.id);
  }
}

void PsProcess::apply(std::size_t /*replica*/, const roles::FinishConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    network_.close(effect.id, *this, /*finish=*/true);
    schedule(now(), kClosedHere, effect.id);
  }
}

void PsProcess::apply(const roles::RefuseConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    world_.mark(Mark::kRefused);
    network_.send(effect.id, *this, net::RefusedFrame{effect.request_id}.to_header(),
                  net::encode(net::Refusal{.exit_code = effect.exit_code,
                                           .sentence = effect.sentence,
                                           .replaced_by = effect.replaced_by}));
    network_.close(effect.id, *this, /*finish=*/true);
    schedule(now(), kClosedHere, effect.id);
  }
}

void PsProcess::apply(const roles::Note& effect) {
  note((effect.level == roles::Note::Level::kWarning ? "warning: " : "") + effect.text);
}

void PsProcess::apply(std::size_t replica, const roles::ConnectToBackup& /*effect*/) {
  schedule(now(), kReach, replica);
}

void PsProcess::apply(std::size_t /*replica*/, const roles::DrainConnections& /*effect*/) {}

void PsProcess::apply(const roles::ClosePort& /*effect*/) { is_open_ = false; }

void PsProcess::apply(const roles::AwaitDrained& effect) {
  schedule(now() + std::max(effect.at_least, milliseconds(1)), kDrained);
}

void PsProcess::apply(const roles::StayIdle& /*effect*/) { exit(roles::kDone, "stays idle"); }

void PsProcess::apply(const roles::EndProcess& effect) {
  if (effect.sentence.find("was replaced while it was silent") == 0) {
    world_.mark(Mark::kPsReplacedWhileSilent);
  }
  exit(effect.code, effect.code == roles::kDone ? "the run is over" : effect.sentence);
}

}  // namespace disttf::sim
