#include "roles/ps/core/ps_core.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

// Returns whether this channel acts for a trainer. (A probe only checks that the task is up; the
// other purposes are not a trainer's.)
bool speaks_as_trainer(const net::Hello& hello) {
  if (hello.from.job == net::Job::kEvaluator) {
    return false;
  }
  switch (hello.purpose) {
    case net::ChannelPurpose::kStep:
    case net::ChannelPurpose::kControl:
    case net::ChannelPurpose::kState:
    case net::ChannelPurpose::kView:
      return true;
    default:
      return false;
  }
}

// Returns whether this is the chief's channel for snapshot shards. (An evaluator's channel carries
// frames like others.)
bool asks_for_snapshots(const net::Hello& hello) {
  return hello.purpose == net::ChannelPurpose::kState && hello.from.job != net::Job::kEvaluator;
}

}  // namespace

PsCore::PsCore(const Task& task, std::size_t threads, MakeArena make_arena, Clock::time_point now)
    : task_(task),
      threads_(threads),
      make_arena_(std::move(make_arena)),
      order_(task.cluster.trainer_count()),
      next_heartbeat_(now) {
  add_range(now);
}

void PsCore::add_range(Clock::time_point now) {
  const auto replica = static_cast<std::uint8_t>(ranges_.size());
  RangeState::MakeArena make_arena;
  if (make_arena_) {
    make_arena = [this, replica](const RunConfig& config, math::Range range) {
      return make_arena_(replica, config, range);
    };
  }
  ranges_.push_back(
      std::make_unique<RangeReplica>(task_, replica, threads_, std::move(make_arena), order_, now));
  ranges_.back()->start().leave_views_with([this] { return leave_views(); });
}

bool PsCore::leave_views() {
  // All ranges or none: a view that one range keeps would still bind this ps.
  if (!std::ranges::all_of(ranges_, [](const auto& range) { return range->host().is_empty(); })) {
    return false;
  }
  for (const auto& range : ranges_) {
    range->leave_views(now_);
  }
  return true;
}

// ---------------------------------------------------------------------------------- connections

std::variant<net::Welcome, net::Refusal> PsCore::welcome(const net::Hello& hello,
                                                         Clock::time_point now) {
  if (hello.purpose == net::ChannelPurpose::kRequest) {
    return net::Refusal{
        .exit_code = kUsage,
        .sentence = self_text() + " trains; only disttf server takes requests to train"};
  }
  // Checked before range_of(), which would make the range.
  if (hello.replica != 0 && task_.cluster.ps.size() < 2) {
    return net::Refusal{.exit_code = kUsage, .sentence = "one ps alone has no replicas"};
  }
  // Range 0 answers for the whole process, since range 1 may not exist yet.
  const bool is_about_replicas =
      hello.purpose == net::ChannelPurpose::kView || hello.purpose == net::ChannelPurpose::kReplica;
  if (is_about_replicas && ranges_.front()->host().trains_without_replicas()) {
    return net::Refusal{.exit_code = kUsage,
                        .sentence = "--ps_replicas: 2 is not allowed here: " + self_text() +
                                    " trains a run that has none"};
  }
  std::variant<net::Welcome, net::Refusal> answer = range_of(hello, now).welcome(hello);
  // Fencing comes after the range's own checks: a refused process must not replace a running one.
  if (!std::holds_alternative<net::Welcome>(answer) || !speaks_as_trainer(hello)) {
    return answer;
  }
  const std::size_t rank = task_.cluster.rank_of(hello.from);
  // Only a newer process counts: one process opens several channels with the same incarnation.
  if (order_.is_replaced(rank, hello.incarnation)) {
    return net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers),
                        .sentence = replaced_text(hello.from),
                        .replaced_by = order_.newest(rank)};
  }
  if (is_candidate(hello)) {
    return answer;
  }
  order_.learn(rank, hello.incarnation);
  fence_replaced(now);
  // The process is the newest now, so what it reports about its last answer can be relied on.
  if (RangeReplica& range = range_of(hello, now); range.roles().lacks(hello)) {
    range.lose_state(now);
    return range.welcome(hello);
  }
  return answer;
}

std::string PsCore::replaced_text(const net::TaskId& trainer) const {
  return describe(task_.cluster, trainer) +
         " has been replaced by a newer process; this one is no longer part of the run";
}

bool PsCore::is_replaced(const net::Hello& hello) const {
  return speaks_as_trainer(hello) &&
         order_.is_replaced(task_.cluster.rank_of(hello.from), hello.incarnation);
}

RangeReplica& PsCore::range_of(const net::Hello& hello, Clock::time_point now) {
  if (hello.replica == 1 && ranges_.size() == 1) {
    add_range(now);
    RangeReplica& made = *ranges_.back();
    // The new range starts with the control channels that are open, or it would count those
    // trainers as absent.
    const Membership& known = ranges_.front()->host().trainers;
    for (const TrainerRecord& record : known.records()) {
      if (const auto found = connections_.find(record.control); found != connections_.end()) {
        made.attach_control(record.control, found->second.hello, now);
      }
    }
  }
  return *ranges_[hello.replica];
}

PsCore::Reads PsCore::connected(ConnectionId id, const net::Hello& hello, const std::string& peer,
                                Clock::time_point now) {
  Reads reads = Reads::kFrames;
  if (is_replaced(hello)) {  // replaced since it was welcomed
    out_.add(CloseConnection{id});
    return Reads::kNothing;
  }
  const bool waits = is_candidate(hello);
  if (!waits && speaks_as_trainer(hello)) {  // the chief may have gone since the welcome
    order_.learn(task_.cluster.rank_of(hello.from), hello.incarnation);
    fence_replaced(now);
  }
  if (hello.purpose == net::ChannelPurpose::kControl) {
    for (const auto& range : ranges_) {
      if (!waits) {
        range->attach_control(id, hello, now);
      }
    }
  } else if (asks_for_snapshots(hello)) {
    reads = Reads::kSnapshots;
  } else if (!range_of(hello, now).connected(id, hello, peer, now, waits)) {
    return Reads::kNothing;
  }
  connections_.emplace(
      id, Connection{.hello = hello, .peer = peer, .is_fenced = false, .is_candidate = waits});
  return reads;
}

void PsCore::reached(std::uint8_t replica, ConnectionId id, Clock::time_point now) {
  Connection& connection = connections_[id];
  connection.hello.purpose = net::ChannelPurpose::kReplica;
  connection.hello.replica = replica;
  ranges_[replica]->reached(id, now);
}

BodyPlan PsCore::header(ConnectionId id, const FrameHeader& header, Clock::time_point now,
                        const net::BodyInPlace& in_place) {
  Connection& from = connections_.at(id);
  // Frames that were queued before the process was replaced.
  if (from.is_fenced) {
    return {.next = BodyPlan::Next::kStop};
  }
  if (from.hello.purpose == net::ChannelPurpose::kControl) {
    return control(id, from, header, now);
  }
  const BodyPlan plan = ranges_[from.hello.replica]->header(id, header, now, in_place);
  // Frames of the chief and of a primary name processes, so this one may have replaced some.
  fence_replaced(now);
  check_ranges();
  return plan;
}

BodyPlan PsCore::body(ConnectionId id, Clock::time_point now) {
  Connection& from = connections_.at(id);
  if (from.is_fenced) {
    return {.next = BodyPlan::Next::kStop};
  }
  if (from.hello.purpose == net::ChannelPurpose::kControl) {
    metrics_came(id, from);
    return {};
  }
  now_ = now;
  const BodyPlan plan = ranges_[from.hello.replica]->body(id, now);
  fence_replaced(now);
  check_ranges();
  return plan;
}

BodyPlan PsCore::control(ConnectionId id, Connection& from, const FrameHeader& header,
                         Clock::time_point now) {
  const bool is_chief = task_.cluster.rank_of(from.hello.from) == 0;
  switch (header.kind) {
    case FrameKind::kMetrics:
      if (const auto plan = TelemetryRelay::begin(from.incoming, header)) {
        return *plan;
      }
      break;
    case FrameKind::kGetMetrics: {
      net::GetMetrics request;
      if (header.body_size == 0 && !request.from_header(header) && is_chief) {
        out_.add(AnswerMetrics{.to = id, .request_id = request.request_id});
        return {};
      }
      break;
    }
    case FrameKind::kTrace:
      if (is_chief && relay_.set_window(header)) {
        for (const auto& range : ranges_) {
          range->times().trace(relay_.window());
        }
        return {};
      }
      break;
    default:
      if (net::Heartbeat beat; header.body_size == 0 && !beat.from_header(header)) {
        return record_heartbeat(id, from, beat, now);
      }
      break;
  }
  return refuse_control(id, from, header);
}

BodyPlan PsCore::refuse_control(ConnectionId id, const Connection& from,
                                const FrameHeader& header) {
  const std::string sentence = "a control channel carries heartbeats and metrics only";
  out_.add(Note{.level = Note::Level::kWarning, .text = "refused " + from.peer + ": " + sentence});
  out_.add(RefuseConnection{.id = id,
                            .request_id = header.request_id,
                            .exit_code = static_cast<std::uint8_t>(kError),
                            .sentence = sentence});
  return {.next = BodyPlan::Next::kStop};
}

// Every trainer sends metrics regularly, so all of them receive the window soon.
void PsCore::metrics_came(ConnectionId id, Connection& from) {
  relay_.keep(task_.cluster.rank_of(from.hello.from), std::move(from.incoming.text));
  if (relay_.window().count != 0 && ranges_.front()->host().step() < relay_.window().end()) {
    out_.add(SendTrace{.to = id, .window = relay_.window()});
  }
}

PsMetrics PsCore::take_metrics() {
  // With replicas a ps may be the backup of its own range and the primary of the other.
  const bool serves_other = ranges_.front()->host().is_backup() && ranges_.size() > 1 &&
                            !ranges_.back()->host().is_backup();
  return (serves_other ? ranges_.back() : ranges_.front())->take_metrics();
}

bool PsCore::awaits_clock() const noexcept {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->times().is_awaited(); });
}

void PsCore::clock(Clock::time_point now) {
  for (const auto& range : ranges_) {
    range->times().made(now);
  }
}

BodyPlan PsCore::record_heartbeat(ConnectionId id, const Connection& from,
                                  const net::Heartbeat& beat, Clock::time_point now) {
  if (from.is_candidate) {
    return {};  // a sign of life of another process than the chief's
  }
  for (const auto& range : ranges_) {
    if (const auto why = range->record_heartbeat(from.hello, beat.generation, now)) {
      leave(kLostPeers, *why);
      return {.next = BodyPlan::Next::kStop};
    }
  }
  // The trainer works on a state that every ps has held, and this process holds no part of it: the
  // ps process that it replaced may still be alive, with connections to that trainer.
  if (beat.generation != 0 && std::ranges::none_of(ranges_, [&](const auto& range) {
        return range->host().is_as_new_as(beat.generation);
      })) {
    ranges_.front()->out().send(id, net::Fenced{beat.request_id}.to_header());
  }
  return {};
}

void PsCore::closed(ConnectionId id, Clock::time_point now) {
  // connected() has accepted this connection, so it is registered: a connection that it turned away
  // is never reported as closed.
  const auto found = connections_.find(id);
  const net::Hello hello = found->second.hello;
  connections_.erase(found);
  if (hello.purpose == net::ChannelPurpose::kControl) {
    for (const auto& range : ranges_) {
      range->detach_control(id, hello, now);
    }
  } else if (!asks_for_snapshots(hello)) {
    ranges_[hello.replica]->closed(id, now);
  }
  replace_lost_chief(now);
  check_ranges();
}

// ------------------------------------------------------------------------------------------ time

void PsCore::forgive(Clock::duration missed, Clock::time_point now) {
  if (missed == Clock::duration::zero()) {
    return;
  }
  for (const auto& range : ranges_) {
    range->forgive(missed, now);
  }
}

void PsCore::time(Clock::time_point now) {
  if (ended_) {
    return;
  }
  const bool beats = now >= next_heartbeat_;
  if (beats) {
    next_heartbeat_ = now + kHeartbeatInterval;
  }
  for (const auto& range : ranges_) {
    range->close_timed_out(now);
    if (beats) {
      range->send_heartbeats(now);
    }
    // Time alone may end a range: a chief that is gone sends no further frame.
    range->check_end(now);
    // A range whose run is over waits for no trainer.
    if (verdict_ || range->host().is_finishing()) {
      continue;
    }
    if (const auto sentence = range->overdue(now)) {
      // Another range has received SHUTDOWN: the result is durable, so a lost trainer is no
      // failure.
      if (is_over()) {
        range->end_now(now);
      } else {
        fail(kLostPeers, *sentence, *sentence + " (says " + self_text() + ")");
      }
    }
  }
  check_ranges();
}

// --------------------------------------------------------------------------------------- the end

bool PsCore::is_over() const {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->host().is_finishing(); });
}

// Returns whether this process may be stopped without loss to the run.
bool PsCore::is_finishing() const {
  return is_over() && std::ranges::all_of(ranges_, [](const auto& range) {
           return range->host().is_finishing() || range->host().is_unused() ||
                  range->host().is_backup();
         });
}

void PsCore::check_ranges() {
  // A range that no task has asked for has no end of its own.
  const auto has_ended = [](const auto& range) {
    return range->host().has_ended() || range->host().is_unused();
  };
  if (!ended_ && std::ranges::all_of(ranges_, has_ended)) {
    ended_ = true;
    out_.add(AwaitDrained{});
  }
}

void PsCore::stop(ExitCode code, const std::string& signal, Clock::time_point now) {
  // Once the run is over a signal cannot change its result; it only shortens the wait.
  if (ended_ || is_finishing()) {
    is_stop_requested_ = true;  // after a finished run: on the way to 0, or there
    for (const auto& range : ranges_) {
      range->end_now(now);
    }
    check_ranges();
    if (is_idle_) {
      out_.add(end_);
    }
    return;
  }
  const std::string why = "stopped by " + signal;
  if (code == kInterrupted) {  // an interactive Ctrl-C is meant for the whole run
    fail(code, why + " before the run finished", self_text() + " was " + why);
  } else {  // SIGTERM: an orchestrator moves this task, and its trainers wait for the next process
    leave(code, why + " before the run finished");
  }
}

void PsCore::broke(const std::string& why) { fail(kError, why, self_text() + " failed: " + why); }

void PsCore::fail(ExitCode code, const std::string& own_sentence,
                  const std::string& peers_sentence) {
  // The first verdict counts: later ones are its consequences.
  if (verdict_) {
    return;
  }
  end_ = {.code = code, .sentence = own_sentence};
  verdict_ =
      net::Refusal{.exit_code = static_cast<std::uint8_t>(kLostPeers), .sentence = peers_sentence};
  // The port is closed first, so that no trainer reconnects after it has received the refusal.
  out_.add(ClosePort{});
  for (const auto& range : ranges_) {
    range->refuse_all(*verdict_);
  }
  ended_ = true;
  // Peers need time to read the sentence. A peer that computes finds it at its next request, or
  // finds the port closed and reports that.
  out_.add(AwaitDrained{.at_least = kDrainTimeout});
}

// Unlike fail(), this refuses no trainer: trainers wait for the next process of this ps.
void PsCore::leave(ExitCode code, const std::string& sentence) {
  if (ended_) {
    return;
  }
  ended_ = true;
  out_.add(EndProcess{.code = code, .sentence = sentence});
}

void PsCore::drained() {
  if (!verdict_ && task_.on_finish == OnFinish::kIdle && !is_stop_requested_) {
    is_idle_ = true;  // it still welcomes tasks that start late: the run is over
    out_.add(StayIdle{});
  } else {
    out_.add(end_);
  }
}

// --------------------------------------------------------------------------------------- queries

bool PsCore::expects_ack() const noexcept {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->host().expects_ack(); });
}

bool PsCore::expects_gradient() const noexcept {
  return std::ranges::any_of(ranges_,
                             [](const auto& range) { return range->host().expects_gradient(); });
}

}  // namespace disttf::roles
