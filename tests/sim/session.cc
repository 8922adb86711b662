#include "tests/sim/session.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::Failure;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr seconds kAttempt{5};
constexpr seconds kOneHost{1};
constexpr seconds kFarewell{3};
constexpr seconds kOthersFollow{1};
constexpr milliseconds kLongestPause{100};
constexpr std::uint64_t kLongestBackoffMs = 2000;

std::span<const std::byte> part_of(const Values& values, math::Range range) {
  return std::as_bytes(std::span(values).subspan(range.begin, range.size()));
}

}  // namespace

TrainerProcess::TrainerProcess(World& world, Network& network, Checks& checks,
                               const roles::RunConfig& config, roles::Task task, std::size_t node,
                               std::size_t size, OnEnd on_end)
    : FiberProcess(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      config_(config),
      config_json_(roles::to_json(config)),
      size_(size),
      links_(task_.cluster.ps.size()),
      parameters_(size),
      next_parameters_(config.elastic() ? size : 0),
      replicated_(config.ps_replicas > 1),
      pending_(links_.size()) {
  for (std::size_t index = 0; index < links_.size(); ++index) {
    links_[index].index = index;
    links_[index].range = checks.range(index);
  }
}

void TrainerProcess::throw_if_stopped() const {
  if (told_to_stop_) {
    throw Failure(roles::kTerminated, "stopped by SIGTERM");
  }
}

Duration TrainerProcess::backoff() {
  const milliseconds pause(1 +
                           world_.below(ceiling_ms_, Draw::kBackoff, task_.incarnation, ++draws_));
  ceiling_ms_ = std::min(2 * ceiling_ms_, kLongestBackoffMs);
  return pause;
}

// ------------------------------------------------------------------------------------- one link

Routine<bool> TrainerProcess::open(Fiber& fiber, Link& link, Time deadline) {
  if (link.channel.is_open) {
    co_return true;
  }
  for (int attempt = 0; attempt < 2; ++attempt) {
    const Time until = replicated_ ? std::min(deadline, now() + kOneHost) : deadline;
    const bool is_open = co_await open_host(fiber, link, until);
    if (is_open) {
      co_return true;
    }
    if (!replicated_) {
      co_return false;
    }
    link.replica = link.replica == 0 ? 1 : 0;
  }
  co_return false;
}

Routine<bool> TrainerProcess::open_host(Fiber& fiber, Link& link, Time deadline) {
  const net::TaskId host = roles::host_of_range(task_.cluster, link.index, link.replica);
  FiberProcess::open(link.channel, fiber, host.index,
                     {.cluster = {},
                      .from = task_.self,
                      .to = host,
                      .purpose = net::ChannelPurpose::kStep,
                      .replica = link.replica,
                      .incarnation = task_.incarnation});
  while (!link.channel.has_frame() && link.channel.is_open && now() < deadline && !told_to_stop_) {
    co_await wait(fiber, deadline);
  }
  throw_if_stopped();
  if (!link.channel.has_frame()) {
    close(link.channel);
    co_return false;
  }
  const Frame answer = take(link.channel);
  if (answer.header.kind == FrameKind::kRefused) {
    net::Refusal refusal;
    close(link.channel);
    if (net::decode(answer.body, refusal)) {
      co_return false;
    }
    const int code = refusal.exit_code == roles::kUsage || refusal.exit_code == roles::kLostPeers
                         ? int{refusal.exit_code}
                         : int{roles::kError};
    throw Failure(code, "refused: " + refusal.sentence);
  }
  net::Welcome welcome;
  if (net::decode(answer.body, welcome)) {
    close(link.channel);
    co_return false;
  }
  replicated_ = replicated_ || welcome.standing != net::Standing::kOnly;
  if (replicated_ && welcome.standing != net::Standing::kPrimary) {
    close(link.channel);
    co_return false;
  }
  const bool is_same = welcome.incarnation == link.incarnation &&
                       welcome.generation == link.generation &&
                       welcome.state != net::ShardState::kEmpty;
  link.incarnation = welcome.incarnation;
  link.state = welcome.state;
  link.generation = welcome.generation;
  if (link.pinned && !is_same) {
    throw StateLost();
  }
  co_return true;
}

bool TrainerProcess::send(Link& link, Frame& frame) {
  if (!link.channel.is_open) {
    return false;
  }
  frame.header.request_id = link.next_request++;
  network_.send(link.channel.id, *this, frame);
  return true;
}

TrainerProcess::Heard TrainerProcess::hear(Link& link, Pending& pending) {
  const Frame frame = take(link.channel);
  const FrameHeader& reply = frame.header;
  pending.reply = reply;
  if (reply.kind == FrameKind::kRefused) {
    net::Refusal refusal;
    if (net::decode(frame.body, refusal)) {
      return Heard::kBroken;
    }
    close(link.channel);
    throw Failure(refusal.exit_code, "refused: " + refusal.sentence);
  }
  if (reply.kind == FrameKind::kHeartbeat || reply.kind == FrameKind::kWork) {
    return Heard::kNothing;
  }
  if (reply.request_id != pending.request.header.request_id) {
    close(link.channel);
    return Heard::kBroken;
  }
  if (reply.kind == FrameKind::kFenced) {
    link.generation = reply.generation;
    throw StateLost();
  }
  if (reply.kind != pending.expected) {
    world_.violate(name() + " asked for " + std::string(name_of(pending.expected)) +
                   " and was answered " + std::string(name_of(reply.kind)));
    return Heard::kBroken;
  }
  if (reply.kind == FrameKind::kParameters) {
    link.state = net::ShardState::kReady;
    link.generation = reply.generation;
    link.step = reply.step;
    checks_.parameters_came(name(), link.index, reply, frame.body);
    if (frame.body.size() == link.range.size() * sizeof(float)) {
      std::memcpy(into_->data() + link.range.begin, frame.body.data(), frame.body.size());
    }
  } else if (reply.kind == FrameKind::kConfig &&
             !std::ranges::equal(frame.body, std::as_bytes(std::span(config_json_)))) {
    world_.violate(name() + " was sent another configuration than the chief's");
  }
  return Heard::kReply;
}

// False: it is lost, and closed.
Routine<bool> TrainerProcess::exchange(Fiber& fiber, Link& link, FrameHeader header,
                                       FrameKind expected, std::shared_ptr<const void> owner,
                                       std::span<const std::byte> body) {
  Pending pending;
  pending.request = Frame{.header = header, .body = body, .owner = std::move(owner)};
  pending.expected = expected;
  if (!send(link, pending.request)) {
    co_return false;
  }
  Time silent_at = now() + task_.timeouts.silence;
  net::FreezeWatch awake(now());
  while (true) {
    while (link.channel.has_frame()) {
      const Heard heard = hear(link, pending);
      if (heard != Heard::kNothing) {
        co_return heard == Heard::kReply;
      }
      silent_at = now() + task_.timeouts.silence;
    }
    silent_at += awake.missed(now(), silent_at);
    if (!link.channel.is_open || now() >= silent_at) {
      close(link.channel);
      co_return false;
    }
    throw_if_stopped();
    co_await wait(fiber, silent_at);
  }
}

// -------------------------------------------------------------------------------------- the start

Routine<void> TrainerProcess::open_all(Fiber& fiber, seconds limit, std::string sentence) {
  net::FreezeWatch awake(now());
  Time deadline = now() + limit;
  reset_backoff();
  while (true) {
    bool missing = false;
    for (Link& link : links_) {
      deadline += awake.missed(now());
      const Time until =
          std::clamp(deadline, now(), now() + std::min<Duration>(kAttempt, limit / 4));
      deadline += awake.missed(now(), until);
      const bool is_open = co_await open(fiber, link, until);
      deadline += awake.missed(now());
      missing = missing || !is_open;
      note_end(link);
    }
    if (!missing) {
      co_return;
    }
    if (over_) {
      throw RunOver();
    }
    if (now() >= deadline) {
      throw Failure(roles::kLostPeers, sentence + roles::seconds_text(limit) + " in vain");
    }
    const Time until = std::min(deadline, now() + backoff());
    deadline += awake.missed(now(), until);
    co_await sleep(fiber, until - now());
    deadline += awake.missed(now());
    throw_if_stopped();
  }
}

Routine<bool> TrainerProcess::connect(Fiber& fiber) {
  try {
    co_await open_all(fiber, task_.timeouts.start, "waited ");
  } catch (const RunOver&) {
  }
  co_return over_;
}

// Throws RunOver.
Routine<bool> TrainerProcess::get_config(Fiber& fiber) {
  while (true) {
    bool answered = false;
    try {
      answered = co_await exchange(fiber, links_.front(), {.kind = FrameKind::kGetConfig},
                                   FrameKind::kConfig, {}, {});
    } catch (const StateLost&) {  // it was told that the run is over before it knew of any
    }
    if (answered) {
      co_return true;
    }
    close(links_.front().channel);
    co_await open_all(fiber, task_.timeouts.peer, "ps 0 was lost before training began; waited ");
    if (over_) {
      throw RunOver();
    }
  }
}

Routine<void> TrainerProcess::publish(Fiber& fiber) {
  for (std::size_t index = links_.size(); index-- > 0;) {
    const auto body = std::make_shared<std::string>(config_json_);
    const bool answered = co_await exchange(fiber, links_[index], {.kind = FrameKind::kPublish},
                                            FrameKind::kAck, body, std::as_bytes(std::span(*body)));
    if (!answered) {
      close(links_[index].channel);
      throw StateLost();
    }
  }
}

Routine<void> TrainerProcess::restore(Fiber& fiber, SavedState state) {
  world_.mark(Mark::kRestore);
  if (newest_generation_ != 0) {
    world_.mark(Mark::kSetBack);
  }
  for (const Link& link : links_) {
    newest_generation_ = std::max(newest_generation_, link.generation);
  }
  const std::uint32_t generation = ++newest_generation_;
  note("sets the ps to step " + std::to_string(state.step) + ", generation " +
       std::to_string(generation));
  for (std::size_t index = links_.size(); index-- > 0;) {
    Link& link = links_[index];
    const auto body = std::make_shared<Bytes>();
    for (const Values& tensor : state.tensors) {
      const auto part = part_of(tensor, link.range);
      body->insert(body->end(), part.begin(), part.end());
    }
    link.generation = generation;
    const bool answered = co_await exchange(fiber, link,
                                            {.kind = FrameKind::kRestore,
                                             .step = state.step,
                                             .range_begin = link.range.begin,
                                             .generation = generation},
                                            FrameKind::kAck, body, *body);
    if (!answered) {
      close(link.channel);
      throw StateLost();
    }
  }
}

bool TrainerProcess::agree() const {
  return std::ranges::all_of(links_, [this](const Link& link) {
    return link.state != net::ShardState::kEmpty && link.generation == links_.front().generation;
  });
}

Routine<StepReply> TrainerProcess::pull(Fiber& fiber) { return join(fiber); }

Routine<StepReply> TrainerProcess::join(Fiber& fiber) {
  for (Link& link : links_) {
    link.pinned = false;
  }
  std::uint64_t ceiling_ms = 50;
  while (true) {
    const bool was_over = over_;
    bool lost = false;
    try {
      co_await open_all(fiber, task_.timeouts.peer, "waited ");
      if (over_ && (leads() || !agree())) {
        throw RunOver();
      }
      if (leads()) {
        co_await publish(fiber);
        if (!agree()) {
          co_await restore(fiber, state_to_train());
        }
        // A ps that is lost now, and comes back with nothing, waits for nobody else.
        for (Link& link : links_) {
          link.pinned = true;
        }
      }
      StepReply reply = co_await pull_once(fiber, 0);
      if (config_.every_gradient_counts() && agree() && !reply.same_step) {
        world_.mark(Mark::kPrevious);
        reply = co_await pull_once(fiber, net::kFlagPrevious);
      }
      if (agree() && (reply.same_step || !config_.every_gradient_counts())) {
        for (Link& link : links_) {
          link.pinned = true;
        }
        newest_generation_ = std::max(newest_generation_, reply.generation);
        reply.joined = true;
        joined(reply.generation);
        co_return reply;
      }
    } catch (const StateLost&) {
      lost = true;
    }
    if (lost) {
      close_all();
      if (was_over) {
        throw RunOver();
      }
    }
    for (Link& link : links_) {
      link.pinned = false;
    }
    const milliseconds pause(1 +
                             world_.below(ceiling_ms, Draw::kBackoff, task_.incarnation, ++draws_));
    ceiling_ms = std::min(2 * ceiling_ms, kLongestBackoffMs);
    co_await sleep(fiber, pause);
    throw_if_stopped();
  }
}

Routine<StepReply> TrainerProcess::join_again(Fiber& fiber) {
  note("joins the run again");
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if (pending_[index].state != Pending::State::kDone) {
      close(links_[index].channel);
    }
  }
  return join(fiber);
}

void TrainerProcess::close_all() {
  for (Link& link : links_) {
    note_end(link);
    close(link.channel);
  }
}

// ------------------------------------------------------------------------------------ exchanges

void TrainerProcess::begin(std::size_t index) {
  Pending& pending = pending_[index];
  if (!send(links_[index], pending.request)) {
    lose(index);
    return;
  }
  pending.state = Pending::State::kWaiting;
  pending.silent_at = now() + task_.timeouts.silence;
}

void TrainerProcess::lose(std::size_t index) {
  Pending& pending = pending_[index];
  close(links_[index].channel);
  if (config_.elastic()) {
    throw StateLost();
  }
  if (pending.state != Pending::State::kLost) {
    pending.state = Pending::State::kLost;
    pending.lost_since = now();
    reset_backoff();
  }
  Duration pause = backoff();
  if (replicated_) {
    pause = std::min<Duration>(pause, kLongestPause);
  }
  pending.retry_at =
      std::min(now() + pause, std::max(now(), pending.lost_since + task_.timeouts.peer));
}

void TrainerProcess::check_awake(Time until) {
  const Duration missed = awake_.missed(now(), until);
  for (Pending& pending : pending_) {
    if (pending.state == Pending::State::kWaiting) {
      pending.silent_at += missed;
    } else if (pending.state == Pending::State::kLost) {
      pending.lost_since += missed;
    }
  }
}

Routine<void> TrainerProcess::retry(Fiber& fiber, std::size_t index) {
  Pending& pending = pending_[index];
  const Time given_up = pending.lost_since + task_.timeouts.peer;
  if (now() >= given_up) {
    throw Failure(roles::kLostPeers, net::to_string({net::Job::kPs, index}) +
                                         " has been gone for " +
                                         roles::seconds_text(task_.timeouts.peer));
  }
  const Time until =
      std::min(given_up, now() + std::min<Duration>(kAttempt, task_.timeouts.peer / 4));
  check_awake(until);
  const bool is_open = co_await open(fiber, links_[index], until);
  check_awake();
  if (!is_open) {
    lose(index);
    co_return;
  }
  world_.mark(Mark::kReconnect);
  note_end(links_[index]);
  begin(index);
}

Routine<void> TrainerProcess::await_some(Fiber& fiber) {
  check_awake();
  Time deadline = Time::max();
  bool ready = false;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const Pending& pending = pending_[index];
    if (pending.state == Pending::State::kWaiting) {
      deadline = std::min(deadline, pending.silent_at);
      ready = ready || links_[index].channel.has_frame() || !links_[index].channel.is_open;
    } else if (pending.state == Pending::State::kLost) {
      deadline = std::min(deadline, pending.retry_at);
    } else {  // has answered: should its ps be lost, nobody else may be able to go on
      deadline = std::min(deadline, pending.look_at);
    }
  }
  deadline = std::max(deadline, now());
  check_awake(deadline);
  if (!ready && deadline > now()) {
    co_await wait(fiber, deadline);
  }
  throw_if_stopped();
  check_awake();
  const Time at = now();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Pending& pending = pending_[index];
    Link& link = links_[index];
    if (pending.state == Pending::State::kLost && at >= pending.retry_at) {
      co_await retry(fiber, index);
    } else if (pending.state == Pending::State::kWaiting) {
      if (link.channel.has_frame()) {
        const Heard heard = hear(link, pending);
        if (heard == Heard::kBroken) {
          lose(index);
        } else if (heard == Heard::kReply) {
          pending.state = Pending::State::kDone;
          pending.look_at = now() + roles::kHeartbeatInterval;
        } else {
          if (pending.reply.kind == FrameKind::kWork) {
            work_.push_back(pending.reply.sequence);
          }
          pending.silent_at = now() + task_.timeouts.silence;
        }
      } else if (!link.channel.is_open || at >= pending.silent_at) {
        lose(index);
      }
    } else if (pending.state == Pending::State::kDone && at >= pending.look_at) {
      co_await look_at_answered(fiber, index);
    }
  }
}

// That a ps has answered says nothing of later. Throws StateLost where it is another one now.
Routine<void> TrainerProcess::look_at_answered(Fiber& fiber, std::size_t index) {
  Pending& pending = pending_[index];
  Link& link = links_[index];
  pending.look_at = now() + roles::kHeartbeatInterval;
  if (link.channel.is_open) {
    network_.send(link.channel.id, *this, {.kind = FrameKind::kHeartbeat});
    co_return;
  }
  const bool is_open = co_await open(fiber, link, now() + roles::kHeartbeatInterval);
  if (is_open) {
    note_end(link);
  }
}

Routine<bool> TrainerProcess::await_all(Fiber& fiber) {
  while (!std::ranges::all_of(
      pending_, [](const Pending& each) { return each.state == Pending::State::kDone; })) {
    co_await await_some(fiber);
    if (!work_.empty()) {
      co_return false;
    }
  }
  co_return true;
}

StepReply TrainerProcess::outcome() const {
  const FrameHeader& first = pending_.front().reply;
  StepReply reply{.step = first.step,
                  .generation = first.generation,
                  .finished = (first.flags & net::kFlagFinished) != 0,
                  .share = first.sequence};
  for (const Pending& pending : pending_) {
    reply.same_step = reply.same_step && pending.reply.step == reply.step;
    reply.dropped = reply.dropped || (pending.reply.flags & net::kFlagDropped) != 0;
  }
  return reply;
}

Routine<StepReply> TrainerProcess::exchange_all(Fiber& fiber) {
  awake_ = net::FreezeWatch(now());
  for (std::size_t index = 0; index < links_.size(); ++index) {
    begin(index);
  }
  static_cast<void>(co_await await_all(fiber));
  co_return outcome();
}

Routine<StepReply> TrainerProcess::pull_once(Fiber& fiber, std::uint16_t flags_of_ahead) {
  std::uint64_t slowest = links_.front().step;
  for (const Link& link : links_) {
    slowest = std::min(slowest, link.step);
  }
  for (const Link& link : links_) {
    pending_[link.index].request =
        Frame{.header = {.kind = FrameKind::kPull,
                         .flags = link.step > slowest ? flags_of_ahead : std::uint16_t{0}}};
    pending_[link.index].expected = FrameKind::kParameters;
  }
  return exchange_all(fiber);
}

Routine<StepReply> TrainerProcess::push_pull(Fiber& fiber, std::uint64_t sequence, bool cut,
                                             std::shared_ptr<const Values> gradient,
                                             Checks::Components components) {
  for (const Link& link : links_) {
    pending_[link.index].request =
        Frame{.header = {.kind = FrameKind::kPushPull,
                         .flags = cut ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                         .step = link.step,
                         .sequence = sequence,
                         .range_begin = link.range.begin,
                         .generation = link.generation},
              .body = part_of(*gradient, link.range),
              .owner = gradient};
    pending_[link.index].expected = FrameKind::kParameters;
  }
  bool lost = false;
  try {
    const StepReply reply = co_await exchange_all(fiber);
    // A copy that was made the primary knows that a push is settled, not whether it was used.
    const bool is_known =
        !components.empty() && (config_.replicas_to_aggregate == 0 || config_.ps_replicas == 1);
    for (std::size_t index = 0; index < links_.size() && is_known; ++index) {
      const FrameHeader& answer = pending_[index].reply;
      if ((answer.flags & net::kFlagDropped) != 0) {
        checks_.push_dropped(index, {links_[index].incarnation, answer.generation},
                             components[index]);
      } else if (!config_.sync_replicas || answer.step > pending_[index].request.header.step) {
        // (Else the run has ended before its step was made.)
        checks_.push_acknowledged(index, {links_[index].incarnation, answer.generation},
                                  components[index]);
      }
    }
    co_return reply;
  } catch (const StateLost&) {
    lost = true;
  }
  if (lost) {
    co_return co_await join_again(fiber);
  }
  co_return StepReply{};
}

void TrainerProcess::push(std::uint64_t micro_batch,
                          const std::shared_ptr<const Values>& gradient) {
  for (Link& link : links_) {
    if (awaiting_ && pending_[link.index].state == Pending::State::kDone) {
      continue;
    }
    Frame frame{.header = {.kind = FrameKind::kPush,
                           .step = link.step,
                           .sequence = micro_batch,
                           .range_begin = link.range.begin,
                           .generation = link.generation},
                .body = part_of(*gradient, link.range),
                .owner = gradient};
    const std::uint64_t request = link.next_request;
    if (broken_ || !send(link, frame)) {
      broken_ = true;
    }
    static_cast<void>(request);
  }
}

Routine<bool> TrainerProcess::await_step(Fiber& fiber, std::uint64_t sequence, bool cut,
                                         StepReply& reply) {
  work_.clear();
  into_ = &next_parameters_;
  bool lost = false;
  try {
    if (broken_) {
      throw StateLost();
    }
    if (!awaiting_) {
      awake_ = net::FreezeWatch(now());
      for (std::size_t index = 0; index < links_.size(); ++index) {
        const Link& link = links_[index];
        std::uint16_t flags = net::kFlagNext;
        flags = static_cast<std::uint16_t>(flags | (cut ? net::kFlagCut : 0));
        pending_[index].request = Frame{.header = {.kind = FrameKind::kPull,
                                                   .flags = flags,
                                                   .step = link.step,
                                                   .sequence = sequence,
                                                   .generation = link.generation}};
        pending_[index].expected = FrameKind::kParameters;
        begin(index);
      }
    }
    awaiting_ = true;
    const bool all = co_await await_all(fiber);
    if (!all) {
      co_return false;
    }
    reply = outcome();
    if (!reply.same_step) {
      reply = co_await join(fiber);
    }
  } catch (const StateLost&) {
    lost = true;
  }
  if (lost) {
    broken_ = false;
    work_.clear();
    reply = co_await join_again(fiber);
  }
  awaiting_ = false;
  std::swap(parameters_, next_parameters_);
  into_ = &parameters_;
  co_return true;
}

Routine<StepReply> TrainerProcess::peek(Fiber& fiber) {
  bool lost = false;
  try {
    co_return co_await pull_once(fiber, 0);
  } catch (const StateLost&) {
    lost = true;
  }
  static_cast<void>(lost);
  co_return co_await join(fiber);
}

// ---------------------------------------------------------------------------------------- the end

void TrainerProcess::say_goodbye() {
  awake_ = net::FreezeWatch(now());
  for (std::size_t index = 0; index < links_.size(); ++index) {
    pending_[index].request = Frame{.header = {.kind = FrameKind::kGoodbye,
                                               .step = links_[index].step,
                                               .generation = links_[index].generation}};
    pending_[index].expected = FrameKind::kAck;
    begin(index);
  }
}

Routine<bool> TrainerProcess::answers_before(Fiber& fiber, Link& link, Pending& pending,
                                             Time deadline) {
  try {
    while (true) {
      while (link.channel.has_frame()) {
        const Heard heard = hear(link, pending);
        if (heard != Heard::kNothing) {
          co_return heard == Heard::kReply;
        }
      }
      if (!link.channel.is_open || now() >= deadline) {
        co_return false;
      }
      co_await wait(fiber, deadline);
    }
  } catch (const StateLost&) {
  } catch (const Failure&) {
  }
  co_return false;
}

Routine<bool> TrainerProcess::await_end(Fiber& fiber) {
  bool lost = false;
  try {
    say_goodbye();
    while (!over_ && std::ranges::none_of(pending_, [](const Pending& each) {
      return each.state == Pending::State::kDone;
    })) {
      co_await await_some(fiber);
    }
  } catch (const StateLost&) {
    lost = true;
  }
  if (lost) {
    close_all();
    co_return over_;
  }
  over_ = true;
  const Time deadline = now() + kOthersFollow;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Pending& pending = pending_[index];
    if (pending.state == Pending::State::kDone) {
      continue;
    }
    bool answered = false;
    if (pending.state == Pending::State::kWaiting) {
      answered = co_await answers_before(fiber, links_[index], pending, deadline);
    }
    if (!answered) {
      close(links_[index].channel);
    }
  }
  co_return true;
}

Routine<std::optional<std::uint64_t>> TrainerProcess::fetch_final(Fiber& fiber) {
  std::optional<std::uint64_t> step;
  for (Link& link : links_) {
    link.pinned = false;
    const Time deadline = now() + kOthersFollow;
    Pending pending;
    pending.request = Frame{.header = {.kind = FrameKind::kPull}};
    pending.expected = FrameKind::kParameters;
    bool answered = false;
    try {
      answered = co_await open(fiber, link, deadline);
      answered = answered && send(link, pending.request);
    } catch (const StateLost&) {
      answered = false;
    } catch (const Failure&) {
      answered = false;
    }
    if (answered) {
      answered = co_await answers_before(fiber, link, pending, deadline);
    }
    if (!answered) {
      co_return std::nullopt;
    }
    step = step.value_or(pending.reply.step);
  }
  co_return step;
}

Routine<bool> TrainerProcess::await_others(Fiber& fiber, StepReply& reply) {
  while (true) {
    bool lost = false;
    try {
      say_goodbye();
      static_cast<void>(co_await await_all(fiber));
    } catch (const StateLost&) {
      lost = true;
    }
    if (!lost) {
      co_return true;
    }
    const StepReply joined = co_await join_again(fiber);
    if (!joined.finished) {  // another chief has set them to what it had
      reply = joined;
      co_return false;
    }
  }
}

Routine<void> TrainerProcess::shutdown(Fiber& fiber) {
  for (Link& link : links_) {
    link.pinned = false;
  }
  co_await tell_all(fiber, FrameKind::kShutdown);
  co_await tell_all(fiber, FrameKind::kGoodbye);
}

Routine<void> TrainerProcess::tell_all(Fiber& fiber, FrameKind kind) {
  std::vector<Link*> untold;
  std::vector<bool> sent(links_.size());
  for (Link& link : links_) {
    pending_[link.index].request = Frame{.header = {.kind = kind}};
    pending_[link.index].expected = FrameKind::kAck;
    sent[link.index] = send(link, pending_[link.index].request);
  }
  for (Link& link : links_) {
    Pending& pending = pending_[link.index];
    bool answered = sent[link.index];
    // Each heartbeat is a sign of life.
    net::FreezeWatch awake(now());
    Time silent_at = now() + task_.timeouts.silence;
    while (answered) {
      const std::size_t before = link.channel.inbox.size() - link.channel.next;
      if (before == 0) {
        silent_at += awake.missed(now(), silent_at);
        if (!link.channel.is_open || now() >= silent_at) {
          answered = false;
          break;
        }
        co_await wait(fiber, silent_at);
        continue;
      }
      try {
        const Heard heard = hear(link, pending);
        if (heard == Heard::kReply) {
          break;
        }
        answered = heard == Heard::kNothing;
        silent_at = now() + task_.timeouts.silence;
      } catch (const StateLost&) {
        answered = false;
      } catch (const Failure&) {
        answered = false;
      }
    }
    if (!answered) {
      close(link.channel);
      untold.push_back(&link);
    }
  }
  const Time deadline = now() + kFarewell;
  reset_backoff();
  while (!untold.empty() && now() < deadline) {
    co_await sleep(fiber, backoff());
    std::vector<Link*> still;
    for (Link* const link : untold) {
      const bool told = co_await tell_again(fiber, *link, kind, deadline);
      if (!told) {
        still.push_back(link);
      }
    }
    untold = still;
  }
}

Routine<bool> TrainerProcess::tell_again(Fiber& fiber, Link& link, FrameKind kind, Time deadline) {
  try {
    const bool is_open = co_await open(fiber, link, deadline);
    if (!is_open) {
      co_return false;
    }
    for (const FrameKind each : {FrameKind::kShutdown, FrameKind::kGoodbye}) {
      const bool answered = co_await exchange(fiber, link, {.kind = each}, FrameKind::kAck, {}, {});
      if (!answered) {
        close(link.channel);
        co_return false;
      }
      if (each == kind) {
        break;
      }
    }
    co_return true;
  } catch (const StateLost&) {
    close(link.channel);
  } catch (const Failure&) {
    co_return true;
  }
  co_return false;
}

}  // namespace disttf::sim
