#include "tests/sim/ps_process.h"

#include <algorithm>
#include <cstring>

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::BodyPlan;
using roles::RangeReplica;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

enum PsEvent : std::uint32_t {
  kWatch = 10,
  kClosedHere,   // of a connection that this ps has closed itself
  kReach,        // of a range: time to reach the other host
  kDialTimeout,  // of a range, and of which connection
  kEnd,
};

constexpr milliseconds kWatchInterval{100};
constexpr milliseconds kDrainTimeout{500};
constexpr milliseconds kDialLimit{2000};
constexpr std::uint64_t kLongestDialPauseMs = 250;

}  // namespace

PsProcess::PsProcess(World& world, Network& network, Checks& checks, roles::Task task,
                     std::size_t node, OnEnd on_end)
    : Process(world, network, std::move(task), node, std::move(on_end)), checks_(checks) {}

void PsProcess::start() {
  awake_ = net::FreezeWatch(now());
  next_heartbeat_ = now();
  ranges_.push_back(std::make_unique<Hosted>());
  ranges_.back()->core =
      std::make_unique<RangeReplica>(task_, std::uint8_t{0}, 1, RangeReplica::MakeArena(), now());
  world_.schedule(now() + kWatchInterval, *this, kWatch);
}

void PsProcess::bury() {
  served_.clear();
  ranges_.clear();
}

// ---------------------------------------------------------------------------------- connections

PsProcess::Hosted& PsProcess::range_of(const net::Hello& hello) {
  if (hello.replica == 1 && ranges_.size() == 1) {
    ranges_.push_back(std::make_unique<Hosted>());
    Hosted& made = *ranges_.back();
    made.core =
        std::make_unique<RangeReplica>(task_, std::uint8_t{1}, 1, RangeReplica::MakeArena(), now());
    const roles::Membership& known = ranges_.front()->core->trainers();
    made.core->trainers().learn_replaced(known);
    for (const roles::TrainerRecord& record : known.records()) {
      if (const auto found = served_.find(record.control);
          record.control != 0 && found != served_.end()) {
        made.core->attach_control(record.control, found->second.hello, now());
        do_effects(made);
      }
    }
  }
  return *ranges_[hello.replica];
}

void PsProcess::accept(ConnectionId id, const net::Hello& hello) {
  if (!listens()) {
    network_.close(id, *this, /*finish=*/false);
    return;
  }
  Hosted& range = range_of(hello);
  const auto answer = range.core->welcome(hello);
  if (const auto* const refusal = std::get_if<net::Refusal>(&answer)) {
    world_.mark(refusal->sentence.find("replaced by a newer process") != std::string::npos
                    ? Mark::kReplacedProcess
                    : Mark::kRefused);
    network_.send(id, *this, {.kind = FrameKind::kRefused}, net::encode(*refusal));
    network_.close(id, *this, /*finish=*/true);
    return;
  }
  network_.send(id, *this, {.kind = FrameKind::kWelcome},
                net::encode(std::get<net::Welcome>(answer)));
  if (hello.purpose == net::ChannelPurpose::kProbe) {
    network_.close(id, *this, /*finish=*/true);
    return;
  }
  Served& served = served_[id];
  served.hello = hello;
  served.heard = now();
  if (hello.purpose == net::ChannelPurpose::kControl) {
    for (const auto& each : ranges_) {
      each->core->attach_control(id, hello, now());
      do_effects(*each);
    }
    return;
  }
  served.range = &range;
  if (hello.purpose == net::ChannelPurpose::kState) {
    return;
  }
  const bool is_read = range.core->connected(id, hello, net::to_string(hello.from), now());
  do_effects(range);
  if (!is_read) {
    served_.erase(id);
    network_.close(id, *this, /*finish=*/true);
  }
}

void PsProcess::on_header(ConnectionId id, const Frame& frame) {
  const auto found = served_.find(id);
  if (found == served_.end()) {
    for (const auto& range : ranges_) {  // the other host of a range answers
      if (range->dialled != id) {
        continue;
      }
      if (frame.header.kind == FrameKind::kWelcome && range->core->may_fill()) {
        served_[id].range = range.get();
        served_[id].heard = now();
        served_[id].hello.purpose = net::ChannelPurpose::kReplica;
        world_.mark(Mark::kFill);
        range->attempts = 0;
        range->core->reached(id, now());
        do_effects(*range);
      } else {
        network_.close(id, *this, /*finish=*/false);
        on_closed(id);
      }
      return;
    }
    return;
  }
  Served& served = found->second;
  served.heard = now();
  if (served.range == nullptr) {
    for (const auto& range : ranges_) {
      range->core->hear(served.hello, frame.header.generation, now());
      do_effects(*range);
      if (!is_alive()) {
        return;
      }
      check_not_replaced(*range, served.hello, frame.header.generation);
    }
    return;
  }
  Hosted& range = *served.range;
  if (served.hello.purpose == net::ChannelPurpose::kState) {
    serve_state(id, range, frame.header);
    return;
  }
  if (frame.header.kind == FrameKind::kPushPull) {
    served.push = frame.header;
  }
  served.plan = range.core->header(id, frame.header, now());
  const BodyPlan::Next next = served.plan.next;
  do_effects(range);
  if (is_alive() && next == BodyPlan::Next::kStop) {
    end_connection(id);
  }
}

// Trainers name a generation once all ps hold it: one that does not was replaced, and ends.
void PsProcess::check_not_replaced(const Hosted& range, const net::Hello& from,
                                   std::uint32_t generation) {
  const RangeReplica& core = *range.core;
  const std::size_t rank = core.rank_of(from);
  if (core.standing() != net::Standing::kBackup && core.holds_state() && !core.is_finishing() &&
      generation > core.generation() &&
      range.core->trainers()[rank].incarnation == from.incarnation) {
    world_.violate(name() + " goes on with generation " + std::to_string(core.generation()) +
                   " though it has been told of " + std::to_string(generation));
  }
}

void PsProcess::on_body(ConnectionId id, const Frame& frame, std::size_t bytes) {
  const auto found = served_.find(id);
  if (found != served_.end() && found->second.range != nullptr &&
      found->second.hello.purpose != net::ChannelPurpose::kState) {
    read(id, found->second, frame, bytes);
  }
}

// `bytes`: of the body, that come before the connection breaks; or all of it.
void PsProcess::read(ConnectionId id, Served& served, const Frame& frame, std::size_t bytes) {
  Hosted& range = *served.range;
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
      return;  // the last byte is not there yet
    }
    served.plan = range.core->body(id, now());
    const BodyPlan::Next next = served.plan.next;
    do_effects(range);
    if (!is_alive()) {
      return;
    }
    if (next == BodyPlan::Next::kStop) {
      end_connection(id);
      return;
    }
  }
}

// The connection's coroutine would end here.
void PsProcess::end_connection(ConnectionId id) {
  network_.close(id, *this, /*finish=*/true);
  on_closed(id);
}

void PsProcess::on_closed(ConnectionId id) {
  for (std::size_t index = 0; index < ranges_.size(); ++index) {
    if (ranges_[index]->dialled == id) {
      ranges_[index]->dialled = 0;
      const std::uint64_t pause =
          1 + world_.below(std::min<std::uint64_t>(
                               50ULL << std::min<std::uint64_t>(ranges_[index]->attempts, 3),
                               kLongestDialPauseMs),
                           Draw::kBackoff, id, 0);
      ++ranges_[index]->attempts;
      world_.schedule(now() + milliseconds(pause), *this, kReach, index);
    }
  }
  const auto found = served_.find(id);
  if (found == served_.end()) {
    return;
  }
  const Served served = found->second;
  served_.erase(found);
  if (served.range == nullptr) {
    for (const auto& range : ranges_) {
      range->core->detach_control(id, served.hello, now());
      do_effects(*range);
    }
  } else if (served.hello.purpose != net::ChannelPurpose::kState) {
    served.range->core->closed(id, now());
    do_effects(*served.range);
  }
}

void PsProcess::serve_state(ConnectionId id, Hosted& range, const FrameHeader& header) {
  const std::shared_ptr<const roles::Cut> cut = range.core->make_cut(header);
  if (!cut) {
    network_.send(id, *this, {.kind = FrameKind::kAck, .request_id = header.request_id});
    return;
  }
  if (cut->sequence != header.sequence) {
    world_.violate(name() + " gives cut " + std::to_string(cut->sequence) + ", not the " +
                   std::to_string(header.sequence) + " that was asked for");
  }
  const std::span<const std::byte> body = std::as_bytes(cut->values.span());
  network_.send(id, *this,
                Frame{.header = {.kind = FrameKind::kCut,
                                 .request_id = header.request_id,
                                 .step = cut->step,
                                 .sequence = cut->sequence,
                                 .range_begin = range.core->shard()->range().begin,
                                 .generation = range.core->generation()},
                      .body = body,
                      .owner = cut});
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
      if (ranges_[a]->dialled == b && !served_.contains(b)) {
        network_.close(b, *this, /*finish=*/false);
        on_closed(b);
      }
      break;
    case kEnd:
      exit(failure_, sentence_);
      break;
    default:
      break;
  }
}

void PsProcess::forgive(Duration missed) {
  if (missed == Duration::zero()) {
    return;
  }
  for (const auto& range : ranges_) {
    range->core->forgive(missed, awake_.now());
    do_effects(*range);
  }
  for (auto& [id, served] : served_) {
    served.heard = std::min(served.heard + missed, now());
  }
}

// On any but a step channel.
void PsProcess::close_silent_channels() {
  if (now() < next_silent_) {
    return;
  }
  std::vector<ConnectionId> silent;
  next_silent_ = now() + task_.timeouts.silence;
  for (const auto& [id, served] : served_) {
    if (served.hello.purpose == net::ChannelPurpose::kStep) {
      continue;
    }
    if (now() - served.heard >= task_.timeouts.silence) {
      silent.push_back(id);
    } else {
      next_silent_ = std::min(next_silent_, served.heard + task_.timeouts.silence);
    }
  }
  for (const ConnectionId id : silent) {
    if (network_.is_open(id, *this)) {
      network_.close(id, *this, /*finish=*/false);
      on_closed(id);
    }
  }
}

bool PsProcess::is_over() const {
  return std::ranges::any_of(ranges_, [](const auto& each) { return each->core->is_finishing(); });
}

void PsProcess::watch() {
  if (ended_) {
    return;
  }
  forgive(awake_.missed(now()));
  close_silent_channels();
  const bool beats = now() >= next_heartbeat_;
  if (beats) {
    next_heartbeat_ = now() + roles::kHeartbeatInterval;
  }
  for (std::size_t index = 0; index < ranges_.size() && is_alive(); ++index) {
    Hosted& range = *ranges_[index];
    range.core->close_silent(now());
    if (beats) {
      range.core->send_heartbeats(now());
    }
    range.core->check_end(now());
    do_effects(range);
    if (verdict_ || range.core->is_finishing() || !is_alive()) {
      continue;
    }
    if (const auto sentence = range.core->overdue(now())) {
      if (is_over()) {
        range.core->end_now(now());
        do_effects(range);
        continue;
      }
      fail(roles::kLostPeers, *sentence);
    }
  }
  if (is_alive() && !ended_) {
    world_.schedule(now() + kWatchInterval, *this, kWatch);
    forgive(awake_.missed(now(), now() + kWatchInterval));
  }
}

void PsProcess::reach(std::size_t index) {
  Hosted& range = *ranges_[index];
  if (range.dialled != 0) {
    return;
  }
  if (!range.core->reaches_out()) {
    range.core->stopped_reaching();
    return;
  }
  if (!range.core->may_fill()) {
    world_.schedule(now() + milliseconds(kLongestDialPauseMs), *this, kReach, index);
    return;
  }
  const net::TaskId host = range.core->other_host();
  range.dialled = network_.dial(*this, host.index,
                                {.cluster = {},
                                 .from = task_.self,
                                 .to = host,
                                 .purpose = net::ChannelPurpose::kReplica,
                                 .replica = range.core->other_replica(),
                                 .incarnation = task_.incarnation});
  world_.schedule(now() + kDialLimit, *this, kDialTimeout, index, range.dialled);
}

// --------------------------------------------------------------------------------------- the end

void PsProcess::terminate() {
  const bool is_finishing =
      is_over() && std::ranges::all_of(ranges_, [](const auto& each) {
        return each->core->is_finishing() || each->core->is_unused() || each->core->is_backup();
      });
  if (ended_ || is_finishing) {
    for (const auto& range : ranges_) {
      range->core->end_now(now());
      do_effects(*range);
    }
    return;
  }
  exit(roles::kTerminated, "stopped by SIGTERM");
}

void PsProcess::fail(int code, const std::string& sentence) {
  if (verdict_) {
    return;
  }
  note("fails: " + sentence);
  failure_ = code;
  sentence_ = sentence;
  verdict_ = net::Refusal{.exit_code = roles::kLostPeers, .sentence = sentence};
  for (const auto& range : ranges_) {
    range->core->refuse_all(*verdict_);
    do_effects(*range);
  }
  ended_ = true;
  world_.schedule(now() + kDrainTimeout, *this, kEnd);
}

void PsProcess::range_ended() {
  if (ended_ || !std::ranges::all_of(ranges_, [](const auto& each) {
        return each->core->has_ended() || each->core->is_unused();
      })) {
    return;
  }
  ended_ = true;
  failure_ = roles::kDone;
  sentence_ = "the run is over";
  world_.schedule(now() + milliseconds(1), *this, kEnd);
}

// --------------------------------------------------------------------------------------- effects

void PsProcess::do_effects(Hosted& range) {
  if (!range.core->out().effects().empty()) {
    range.core->out().drain([&](auto& effect) { apply(range, effect); });
  }
  if (is_alive()) {
    look(range);
  }
}

// What the checkers want to know.
void PsProcess::look(Hosted& range) {
  const RangeReplica& core = *range.core;
  const roles::Shard* const shard = core.shard();
  const net::Standing standing = core.standing();
  const bool holds = core.holds_state();
  if (standing != range.standing) {
    if (standing == net::Standing::kPrimary && holds && range.held) {
      checks_.host_was_promoted(core.index(), {core.lineage(), core.generation()},
                                core.view().number, shard->step());
    }
    range.standing = standing;
    ++range.standings;
  }
  if (core.view().number < range.view) {
    world_.violate(name() + " went back from view " + std::to_string(range.view) + " of range " +
                   std::to_string(core.index()) + " to view " + std::to_string(core.view().number));
  }
  if (core.view().number != range.view) {
    range.view = core.view().number;
    if (core.view().paired) {
      world_.mark(Mark::kPair);
    }
  }
  if (holds && (range.step != shard->step() || range.generation != core.generation())) {
    range.step = shard->step();
    if (range.generation != core.generation()) {
      check_nobody_waits(range);
    }
    range.generation = core.generation();
    checks_.host_made_step(name(), core.index(), {core.lineage(), range.generation}, range.step,
                           range.core->shard()->parameters(), standing == net::Standing::kBackup);
    if (standing != net::Standing::kBackup) {
      // (Who was a copy meanwhile may have lost a step that nobody was told of.)
      checks_.host_is_at(name(), core.index(), task_.incarnation * 256 + range.standings,
                         range.generation, range.step);
    }
  }
  range.held = holds;
}

// Whoever waits for a step, or for the end, does so for one of the state that is.
void PsProcess::check_nobody_waits(const Hosted& range) {
  for (const roles::TrainerRecord& record : range.core->trainers().records()) {
    if (record.waiting && record.waiting->header.generation != 0 &&
        record.waiting->header.generation != range.core->generation()) {
      world_.violate(name() + " keeps somebody waiting for a " +
                     std::string(name_of(record.waiting->header.kind)) + " of generation " +
                     std::to_string(record.waiting->header.generation) +
                     ", which is no more: it holds " + std::to_string(range.core->generation()));
    }
  }
}

// A gradient is answered with what it went into, or is fenced.
void PsProcess::check_answer(const FrameHeader& answer, ConnectionId to) {
  const auto found = served_.find(to);
  if (found == served_.end()) {
    return;
  }
  const FrameHeader& push = found->second.push;
  if (push.request_id == answer.request_id && push.generation != answer.generation) {
    world_.violate(name() + " answers a push of generation " + std::to_string(push.generation) +
                   " with parameters of " + std::to_string(answer.generation));
  }
}

void PsProcess::apply(Hosted& range, roles::SendFrame& effect) {
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
      if (range.core->is_backup()) {
        world_.violate(
            name() + " answers though another host is the primary (invariant 7): range " +
            std::to_string(range.core->index()) + ", step " + std::to_string(effect.header.step));
        return;
      }
      if (range.core->standing() == net::Standing::kPrimary && task_.cluster.ps.size() > 1 &&
          range.core->shard()->config().sync_replicas) {
        checks_.host_acknowledges(name(), range.core->index(),
                                  {range.core->lineage(), range.core->generation()},
                                  range.core->view().number, effect.header.step);
      }
      break;
    default:
      break;
  }
  if (effect.owner && range.core->shard() != nullptr && range.core->shard()->config().elastic()) {
    // The others go on without a trainer that is slow to take this, which may then be torn: its
    // gradients would come too late to count. Only here, a system has it all at once.
    network_.send(effect.to, *this, effect.header,
                  Bytes(effect.borrowed.begin(), effect.borrowed.end()));
  } else if (effect.owner) {
    network_.send(effect.to, *this,
                  Frame{.header = effect.header,
                        .body = effect.borrowed,
                        .owner = std::move(effect.owner),
                        .sum = sum_of(effect.borrowed)});
  } else {
    network_.send(effect.to, *this, effect.header, std::move(effect.body));
  }
}

void PsProcess::apply(Hosted& /*range*/, const roles::LeaveAnswer& /*effect*/) {
  world_.violate(name() + " leaves an answer in memory that nobody shares");
}

void PsProcess::apply(Hosted& /*range*/, const roles::CloseConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    network_.close(effect.id, *this, /*finish=*/false);
    world_.schedule(now(), *this, kClosedHere, effect.id);
  }
}

void PsProcess::apply(Hosted& /*range*/, const roles::FinishConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    network_.close(effect.id, *this, /*finish=*/true);
    world_.schedule(now(), *this, kClosedHere, effect.id);
  }
}

void PsProcess::apply(Hosted& /*range*/, const roles::RefuseConnection& effect) {
  if (network_.is_open(effect.id, *this)) {
    world_.mark(Mark::kRefused);
    network_.send(
        effect.id, *this, {.kind = FrameKind::kRefused, .request_id = effect.request_id},
        net::encode(net::Refusal{.exit_code = effect.exit_code, .sentence = effect.sentence}));
    network_.close(effect.id, *this, /*finish=*/true);
    world_.schedule(now(), *this, kClosedHere, effect.id);
  }
}

void PsProcess::apply(Hosted& /*range*/, const roles::Note& effect) {
  note((effect.level == roles::Note::Level::kWarning ? "warning: " : "") + effect.text);
}

void PsProcess::apply(Hosted& /*range*/, const roles::ForgetSharing& /*effect*/) {}

void PsProcess::apply(Hosted& range, const roles::ReachOut& /*effect*/) {
  for (std::size_t index = 0; index < ranges_.size(); ++index) {
    if (ranges_[index].get() == &range) {
      world_.schedule(now(), *this, kReach, index);
    }
  }
}

void PsProcess::apply(Hosted& /*range*/, const roles::RangeEnded& /*effect*/) { range_ended(); }

void PsProcess::apply(Hosted& /*range*/, const roles::LeaveRun& effect) {
  world_.mark(Mark::kPsReplacedWhileSilent);
  exit(effect.code, effect.sentence);
}

std::string PsProcess::describe_state() const {
  std::string text;
  for (const auto& range : ranges_) {
    const RangeReplica& core = *range->core;
    text += (text.empty() ? "range " : "; range ") + std::to_string(core.index()) + ": standing " +
            std::to_string(static_cast<int>(core.standing())) + ", generation " +
            std::to_string(core.generation());
    if (core.shard() != nullptr) {
      text += ", step " + std::to_string(core.shard()->step());
    }
    for (const roles::TrainerRecord& record : range->core->trainers().records()) {
      text += record.present() ? (record.waiting ? " W" : " P") : record.done ? " D" : " -";
      if (record.waiting) {
        text += std::to_string(static_cast<int>(record.waiting->header.kind)) + "@" +
                std::to_string(record.waiting->header.step);
      }
    }
  }
  return text;
}

}  // namespace disttf::sim
