#include "tests/sim/ps_process.h"

#include <algorithm>
#include <cstring>

#include "net/wire/messages.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::BodyPlan;
using roles::PsCore;
using roles::RangeReplica;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

// Returns whether it is the chief's state channel. An evaluator's has frames like others.
bool asks_for_snapshots(const net::Hello& hello) {
  return hello.purpose == net::ChannelPurpose::kState && hello.from.job != net::Job::kEvaluator;
}

constexpr milliseconds kDialLimit{2000};
constexpr std::uint64_t kLongestDialPauseMs = 250;

}  // namespace

PsProcess::PsProcess(World& world, Network& network, Checks& checks, SimulatedDisk* disk,
                     roles::Task task, std::size_t node, OnEnd on_end)
    : Process(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      state_channels_(world, network, *this, disk, kShardWritten) {}

void PsProcess::start() {
  awake_ = net::FreezeWatch(now());
  const auto make_arena = [this](std::uint8_t replica, const roles::RunConfig& /*config*/,
                                 math::Range /*range*/) {
    roles::Arena arena;
    if (task_.transport == roles::Transport::kSharedMemory) {
      arena.place_of_update = [this, replica] { return place_of_update(replica); };
    }
    return arena;
  };
  core_ = std::make_unique<PsCore>(task_, 1, make_arena, now());
  schedule(now() + roles::kWatchInterval, kWatch);
}

// One update in three contains the optimizer's state. The backup defers it and the updates after
// it.
std::span<float> PsProcess::place_of_update(std::size_t replica) {
  Hosted& range = hosted_[replica];
  roles::Shard& shard = *core_->range(replica).state().shard();
  range.place.assign(
      range.updates++ % 3 == 0 ? shard.storage().update_size_with_state() : shard.range().size(),
      0.0F);
  return range.place;
}

void PsProcess::bury() {
  served_.clear();
  core_.reset();
}

// ---------------------------------------------------------------------------------- connections

void PsProcess::accept(ConnectionId id, const net::Hello& hello) {
  if (!listens()) {
    network_.close(id, *this, /*finish=*/false);
    return;
  }
  const auto answer = core_->welcome(hello, now());
  do_effects();
  if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
    world_.mark(refusal->replaced_by != 0 ? Mark::kReplacedProcess : Mark::kRefused);
    network_.send(id, *this, net::RefusedFrame{}.to_header(), net::encode(*refusal));
    network_.close(id, *this, /*finish=*/true);
    return;
  }
  network_.send(id, *this, net::WelcomeFrame{}.to_header(),
                net::encode(std::get<net::Welcome>(answer)));
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    network_.close(id, *this, /*finish=*/true);
    return;
  }
  const PsCore::Reads reads = core_->connected(id, hello, net::to_string(hello.from), now());
  if (task_.transport == roles::Transport::kSharedMemory) {
    core_->range(hello.replica).roles().take_rest_with([this](ConnectionId primary) {
      take_rest(primary);
    });
  }
  do_effects();
  if (reads == PsCore::Reads::kNothing) {
    network_.close(id, *this, /*finish=*/true);
    return;
  }
  Served& served = served_[id];
  served.hello = hello;
  served.heard = now();
}

// Reads what lies in memory before what has crossed the connection.
void PsProcess::on_header(ConnectionId id, const Frame& frame) {
  while (is_alive() && is_primarys(id) && !network_.left_updates(id).frames.empty()) {
    LeftUpdates& left = network_.left_updates(id);
    const Frame update = std::move(left.frames.front());
    left.frames.pop_front();
    hear(id, update);
  }
  if (!frame.is_left && is_alive()) {
    hear(id, frame);
  }
}

void PsProcess::hear(ConnectionId id, const Frame& frame) {
  const auto found = served_.find(id);
  if (found == served_.end()) {
    greeted(id, frame);
    return;
  }
  Served& served = found->second;
  served.heard = now();
  if (asks_for_snapshots(served.hello)) {
    state_channels_.header(id, core_->range(served.hello.replica), frame.header);
    return;
  }
  if (frame.header.kind == FrameKind::kPushPull) {
    served.push = frame.header;
  }
  if (frame.header.kind == FrameKind::kAck &&
      network_.has_left_updates(id)) {  // on the other host's connection to its primary
    std::optional<std::uint64_t>& unread = network_.left_updates(id).unread;
    if (unread && *unread <= frame.header.request_id) {
      unread.reset();
    }
  }
  if (frame.is_torn) {
    Hosted& range = hosted_[served.hello.replica];
    range.is_torn = true;
  }
  // A ps copies a snapshot shard while it is idle: here one float between two frames.
  core_->range(served.hello.replica).state().copy_snapshot(1);
  const std::span<const std::byte> in_place = frame.in_place.bytes;
  roles::PushReceiver& pushes = core_->range(served.hello.replica).pushes();
  served.plan = pushes.takes(id, frame.header)
                    ? pushes.header(id, frame.header, now(), frame.in_place)
                    : core_->header(id, frame.header, now(), frame.in_place);
  if (!in_place.empty() && served.plan.is_body()) {  // the whole body is there
    read(id, served, {.header = frame.header, .body = in_place}, in_place.size());
    return;
  }
  if (!in_place.empty()) {
    world_.mark(frame.header.kind == FrameKind::kPush     ? Mark::kElasticInPlace
                : frame.header.kind == FrameKind::kUpdate ? Mark::kUpdateInPlace
                                                          : Mark::kInPlace);
  }
  const BodyPlan::Next next = served.plan.next;
  const net::Hello from = served.hello;
  do_effects();
  if (!is_alive()) {
    return;
  }
  if (from.purpose == net::ChannelPurpose::kControl) {
    for (std::size_t replica = 0; replica < core_->range_count(); ++replica) {
      check_not_replaced(core_->range(replica), from, frame.header.generation);
    }
  }
  if (next == BodyPlan::Next::kStop) {
    end_connection(id);
  }
}

// The other host of a range has answered.
void PsProcess::greeted(ConnectionId id, const Frame& frame) {
  for (std::size_t replica = 0; replica < core_->range_count(); ++replica) {
    Hosted& hosted = hosted_[replica];
    if (hosted.dialled != id) {
      continue;
    }
    if (frame.header.kind == FrameKind::kWelcome && core_->range(replica).host().may_fill()) {
      served_[id].heard = now();
      served_[id].hello.purpose = net::ChannelPurpose::kReplica;
      served_[id].hello.replica = static_cast<std::uint8_t>(replica);
      world_.mark(Mark::kFill);
      hosted.attempts = 0;
      core_->reached(static_cast<std::uint8_t>(replica), id, now());
      do_effects();
    } else {
      network_.close(id, *this, /*finish=*/false);
      on_closed(id);
    }
    return;
  }
}

// Trainers name a generation only once all ps hold it. A ps that does not hold it was replaced, and
// must end.
void PsProcess::check_not_replaced(const RangeReplica& range, const net::Hello& from,
                                   net::Generation generation) {
  if (range.host().role != net::ReplicaRole::kBackup && range.host().holds_state() &&
      !range.host().is_finishing() && generation > range.state().generation() &&
      range.host().trainers.records()[task_.cluster.rank_of(from.from)].incarnation ==
          from.incarnation) {
    world_.violate(name() + " goes on with generation " +
                   std::to_string(net::number_of(range.state().generation())) +
                   " though it has received " + std::to_string(net::number_of(generation)));
  }
}

void PsProcess::on_body(ConnectionId id, const Frame& frame, std::size_t bytes) {
  const auto found = served_.find(id);
  if (found == served_.end()) {
    return;
  }
  if (!asks_for_snapshots(found->second.hello)) {
    read(id, found->second, frame, bytes);
  } else if (bytes == frame.body.size()) {
    state_channels_.body(id, core_->range(found->second.hello.replica), frame.body);
  }
}

// `bytes`: how many bytes of the body arrive before the connection breaks, or all.
void PsProcess::read(ConnectionId id, Served& served, const Frame& frame, std::size_t bytes) {
  const bool is_whole = bytes == frame.body.size();
  std::span<const std::byte> rest = frame.body.first(bytes);
  while (served.plan.is_body()) {
    if (served.plan.next == BodyPlan::Next::kDiscard) {
      const std::size_t part = std::min<std::size_t>(served.plan.bytes, rest.size());
      if (part < served.plan.bytes) {
        return;
      }
      rest = rest.subspan(part);
    }
    for (const std::span<std::byte> place : served.plan.places) {
      const std::size_t part = std::min(place.size(), rest.size());
      if (part != 0) {
        std::memcpy(place.data(), rest.data(), part);
      }
      rest = rest.subspan(part);
      if (part < place.size()) {
        if (is_whole) {
          world_.violate(name() + " waits for more than the body of a " +
                         std::string(name_of(frame.header.kind)));
        }
        return;
      }
    }
    if (!is_whole && rest.empty()) {
      return;  // the last byte has not arrived yet
    }
    roles::PushReceiver& pushes = core_->range(served.hello.replica).pushes();
    served.plan = pushes.takes_body(id) ? pushes.body(id, now()) : core_->body(id, now());
    const BodyPlan::Next next = served.plan.next;
    do_effects();
    if (!is_alive()) {
      return;
    }
    if (next == BodyPlan::Next::kStop) {
      end_connection(id);
      return;
    }
  }
}

// In the product the connection's coroutine ends here.
void PsProcess::end_connection(ConnectionId id) {
  network_.close(id, *this, /*finish=*/true);
  on_closed(id);
}

void PsProcess::on_closed(ConnectionId id) {
  for (std::size_t replica = 0; replica < hosted_.size(); ++replica) {
    Hosted& hosted = hosted_[replica];
    if (hosted.dialled == id) {
      hosted.dialled = 0;
      const std::uint64_t pause =
          1 +
          world_.below(std::min<std::uint64_t>(50ULL << std::min<std::uint64_t>(hosted.attempts, 3),
                                               kLongestDialPauseMs),
                       Draw::kBackoff, id, 0);
      ++hosted.attempts;
      schedule(now() + milliseconds(pause), kReach, replica);
    }
  }
  if (is_primarys(id)) {
    take_rest(id);
  }
  if (served_.erase(id) != 0) {
    core_->closed(id, now());
    do_effects();
  }
}

// A connection that was dialed here has no HELLO.
bool PsProcess::is_primarys(ConnectionId id) {
  const auto found = served_.find(id);
  return found != served_.end() && found->second.hello.purpose == net::ChannelPurpose::kReplica &&
         found->second.hello.incarnation != 0;
}

void PsProcess::take_rest(ConnectionId primary) {
  LeftUpdates& left = network_.left_updates(primary);
  left.is_taken = false;
  while (!left.frames.empty()) {
    const Frame update = std::move(left.frames.front());
    left.frames.pop_front();
    const BodyPlan plan = core_->header(primary, update.header, now(), update.in_place);
    if (plan.next == BodyPlan::Next::kStop) {
      left.frames.clear();
      return;
    }
    world_.mark(Mark::kRestTaken);
  }
}

// ------------------------------------------------------------------------------------------ time

void PsProcess::happen(std::uint32_t what, std::uint64_t a, std::uint64_t b) {
  switch (what) {
    case kWatch:
      watch();
      break;
    case kClosedHere:
      on_closed(a);
      break;
    case kReach:
      reach(a);
      break;
    case kDialTimeout:
      if (hosted_[a].dialled == b && !served_.contains(b)) {
        network_.close(b, *this, /*finish=*/false);
        on_closed(b);
      }
      break;
    case kDrained:
      core_->drained();
      do_effects();
      break;
    case kShardWritten:
      try {
        state_channels_.written(a);
      } catch (const KilledAtDisk& killed) {
        perish(killed.silently);
      }
      break;
    default:
      break;
  }
}

void PsProcess::forgive(Duration missed) {
  if (missed == Duration::zero()) {
    return;
  }
  core_->forgive(missed, awake_.now());
  do_effects();
  for (auto&& [id, served] : served_) {
    served.heard = std::min(served.heard + missed, now());
  }
}

// Step channels and evaluators' channels have no heartbeat timeout.
void PsProcess::close_timed_out_channels() {
  if (now() < next_timeout_) {
    return;
  }
  std::vector<ConnectionId> timed_out;
  next_timeout_ = now() + task_.timeouts.heartbeat_timeout;
  for (auto&& [id, served] : served_) {
    if (served.hello.purpose == net::ChannelPurpose::kStep ||
        served.hello.from.job == net::Job::kEvaluator) {
      continue;
    }
    if (now() - served.heard >= task_.timeouts.heartbeat_timeout) {
      timed_out.push_back(id);
    } else {
      next_timeout_ = std::min(next_timeout_, served.heard + task_.timeouts.heartbeat_timeout);
    }
  }
  for (const ConnectionId id : timed_out) {
    if (network_.is_open(id, *this)) {
      network_.close(id, *this, /*finish=*/false);
      on_closed(id);
    }
  }
}

void PsProcess::watch() {
  if (core_->has_ended()) {
    return;
  }
  forgive(awake_.missed(now()));
  close_timed_out_channels();
  core_->time(now());
  do_effects();
  if (is_alive() && !core_->has_ended()) {
    schedule(now() + roles::kWatchInterval, kWatch);
    forgive(awake_.missed(now(), now() + roles::kWatchInterval));
  }
}

void PsProcess::reach(std::size_t replica) {
  Hosted& hosted = hosted_[replica];
  RangeReplica& range = core_->range(replica);
  if (hosted.dialled != 0) {
    return;
  }
  if (!range.host().connects_to_backup()) {
    range.roles().stopped_connecting_to_backup();
    return;
  }
  if (!range.host().may_fill()) {
    schedule(now() + milliseconds(kLongestDialPauseMs), kReach, replica);
    return;
  }
  const net::TaskId host = range.host().other_host();
  hosted.dialled = network_.dial(*this, host.index,
                                 {.cluster = {},
                                  .from = task_.self,
                                  .to = host,
                                  .purpose = net::ChannelPurpose::kReplica,
                                  .replica = range.host().other_replica(),
                                  .incarnation = task_.incarnation});
  schedule(now() + kDialLimit, kDialTimeout, replica, hosted.dialled);
}

// --------------------------------------------------------------------------------------- the end

void PsProcess::terminate() {
  core_->stop(roles::kTerminated, "SIGTERM", now());
  do_effects();
}

std::string PsProcess::describe_state() const {
  std::string text;
  for (std::size_t replica = 0; replica < core_->range_count(); ++replica) {
    const RangeReplica& core = core_->range(replica);
    text += (text.empty() ? "range " : "; range ") + std::to_string(core.state().index()) +
            ": replica role " + std::to_string(static_cast<int>(core.host().role)) +
            ", generation " + std::to_string(net::number_of(core.state().generation()));
    if (core.state().shard() != nullptr) {
      text += ", step " + std::to_string(core.state().shard()->step());
    }
    for (const roles::TrainerRecord& record : core.host().trainers.records()) {
      text += record.present() ? (record.waiting ? " W" : " P") : record.done ? " D" : " -";
      if (record.waiting) {
        text += std::to_string(static_cast<int>(net::header_of(record.waiting->request).kind)) +
                "@" + std::to_string(net::header_of(record.waiting->request).step);
      }
    }
  }
  return text;
}

std::string states_of(const std::vector<std::unique_ptr<Process>>& processes) {
  std::string text;
  for (const auto& process : processes) {
    if (process->is_alive()) {
      text += "\n    " + process->name();
      if (const auto* const ps = dynamic_cast<const PsProcess*>(process.get())) {
        text += ": " + ps->describe_state();
      }
    }
  }
  return text;
}

}  // namespace disttf::sim
