#include "tests/sim/session.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "run/task.h"

namespace disttf::sim {

using net::FrameHeader;
using net::FrameKind;
using roles::Failure;
using roles::ReplyPlan;
using roles::RequestBody;

namespace {

// A session that waits so often at the same time is in an endless loop.
constexpr std::uint64_t kMostRounds = 100'000;

}  // namespace

TrainerProcess::TrainerProcess(World& world, Network& network, Checks& checks,
                               const roles::RunConfig& config, roles::Task task, std::size_t node,
                               std::size_t size, OnEnd on_end)
    : FiberProcess(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      config_(config),
      size_(size),
      session_(task_, std::mt19937_64(world.draw(Draw::kBackoff, task_.incarnation, 0))),
      parameters_(size),
      incarnation_(task_.incarnation),
      config_json_(roles::to_json(config)),
      way_(task_.cluster, task_.cluster.rank_of(task_.self)),
      links_(task_.cluster.ps.size()),
      coming_(links_.size()),
      stay_(links_.size()) {}

void TrainerProcess::throw_if_stopped() const {
  if (stop_requested_) {
    throw was_replaced_ ? Failure(roles::kLostPeers, "has been replaced by a newer process")
                        : Failure(roles::kTerminated, "stopped by SIGTERM");
  }
}

void TrainerProcess::take_incarnation_above(std::uint64_t other) {
  world_.mark(Mark::kIncarnationTaken);
  incarnation_ = roles::incarnation_above(
      other, incarnation_of(world_, Duration::zero(), task_.incarnation, ++incarnations_));
  session_.took_incarnation(incarnation_);
  note("goes on as a newer process");
  took_incarnation();
}

void TrainerProcess::prepare() {
  session_.expect_replicas(config_.ps_replicas > 1);
  session_.prepare({.size = size_,
                    .fully_synchronous = config_.every_gradient_counts(),
                    .elastic = config_.elastic(),
                    .configuration = roles::configuration_id(config_json_)});
}

StateName TrainerProcess::state_of(std::size_t range) const {
  return {.lineage = links_[range].incarnation, .generation = session_.range(range).generation()};
}

std::span<const std::byte> TrainerProcess::part_of(const Values& values, std::size_t range) const {
  const math::Range part = session_.range(range).range;
  return std::as_bytes(std::span(values).subspan(part.begin, part.size()));
}

// ------------------------------------------------------------------------- an operation under way

Time TrainerProcess::begin_now() noexcept {
  awake_ = net::FreezeWatch(now());
  return now();
}

Routine<void> TrainerProcess::run(Fiber& fiber) {
  using Stand = roles::RunSession::Outcome;
  co_await perform(fiber);
  while (session_.outcome() == Stand::kUnderWay || session_.outcome() == Stand::kNeedsState) {
    if (session_.outcome() == Stand::kNeedsState) {
      state_ = co_await state_to_train(fiber);
      world_.mark(Mark::kRestore);
      if (has_joined_) {
        world_.mark(Mark::kRolledBack);
      }
      note("sets the ps to step " + std::to_string(state_->step));
      session_.provided(state_->step, now());
    } else {
      co_await await_some(fiber);
    }
    co_await perform(fiber);
  }
  state_.reset();
  if (session_.outcome() == Stand::kFailed) {
    throw Failure(session_.failure());
  }
  if (session_.outcome() == Stand::kRunOver) {
    throw RunOver();
  }
  if (session_.outcome() == Stand::kOtherConfiguration) {
    world_.mark(Mark::kOtherConfiguration);
    throw Failure(roles::kUsage, "the run has another configuration");
  }
}

Routine<roles::StepResult> TrainerProcess::run_step(Fiber& fiber, Values& into) {
  into_ = &into;
  comes_misled_ = false;
  co_await run(fiber);
  has_joined_ = true;
  is_misled_ = comes_misled_ || (is_misled_ && !session_.reply().joined);
  if (session_.outcome() != roles::RunSession::Outcome::kNeedsWork) {
    stay_ = std::exchange(coming_, {});
    coming_.resize(links_.size());
    may_stay_ = false;
  }
  co_return session_.reply();
}

bool TrainerProcess::read_again(Values& parameters) const {
  bool is_same = true;
  for (std::size_t range = 0; range < stay_.size(); ++range) {
    const std::span<const std::byte> body = stay_[range].body;
    if (!body.empty()) {
      float* const to = parameters.data() + session_.range(range).range.begin;
      is_same = is_same && std::memcmp(to, body.data(), body.size()) == 0;
      std::memcpy(to, body.data(), body.size());
    }
  }
  return is_same;
}

Routine<void> TrainerProcess::await_some(Fiber& fiber) {
  check_awake();
  const Time deadline = std::max(session_.deadline(), awake_.now());
  check_awake(deadline);
  const auto is_ready = [this](std::size_t index) {
    return session_.reads(index) &&
           (links_[index].channel.has_frame() || !links_[index].channel.is_open);
  };
  bool ready = has_lost_leader();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    ready = ready || is_ready(index);
  }
  rounds_ = std::exchange(round_at_, now()) == now() ? rounds_ + 1 : 0;
  if (rounds_ > kMostRounds) {
    world_.violate(name() + " goes round and round, and nothing comes of it");
    co_await sleep(fiber, std::chrono::hours(1));
  }
  if (!ready && deadline > now()) {
    co_await wait(fiber, deadline);
  }
  throw_if_stopped();
  check_awake();
  const Time at = awake_.now();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if (!is_ready(index)) {
      continue;
    }
    const Channel& channel = links_[index].channel;
    if (channel.has_frame() &&
        (channel.inbox[channel.next].header.flags & net::kFlagGroupSum) != 0) {
      co_await receive_at_leader(fiber, index);
    } else {
      receive(index);
    }
  }
  push_without_leader();
  for (const auto& [ps, generation] : std::exchange(replaced_, {})) {
    session_.is_replaced(ps, generation, at);
  }
  look_at_incarnations(at);
  session_.time(at);
}

void TrainerProcess::look_at_incarnations(Time at) {
  if (reported_incarnation_ != 0) {
    session_.record_incarnation(std::exchange(reported_incarnation_, 0), at);
  }
}

void TrainerProcess::check_awake(Time until) {
  const Duration missed = awake_.missed(now(), until);
  if (missed != Duration::zero()) {
    session_.forgive(missed);
  }
}

void TrainerProcess::receive(std::size_t index) {
  Channel& channel = links_[index].channel;
  if (!channel.has_frame()) {
    session_.lost(index, std::make_error_code(std::errc::connection_reset), now());
    return;
  }
  const Frame frame = take(channel);
  switch (session_.header(index, frame.header, now())) {
    case ReplyPlan::kNothing:
      return;
    case ReplyPlan::kRefusal: {
      net::Refusal refusal;
      if (net::decode(frame.body, refusal)) {
        world_.violate(name() + " was refused in words that say nothing");
      }
      close(channel);
      session_.refused(index, refusal, now());
      return;
    }
    case ReplyPlan::kParameters: {
      const bool misleads = frame.is_torn && is_replaced();
      comes_misled_ = comes_misled_ || misleads;
      if (!misleads && !is_misled_) {
        checks_.parameters_came(name(), index, frame.header, frame.body);
      }
      if (config_.ps_replicas > 1 && !misleads && !is_misled_) {
        checks_.witnesses().has_seen(task_.incarnation, index,
                                     {state_of(index).lineage, frame.header.generation},
                                     frame.header.step);
      }
      const math::Range range = session_.range(index).range;
      if (frame.body.size() == range.size() * sizeof(float) && !frame.body.empty()) {
        std::memcpy(into_->data() + range.begin, frame.body.data(), frame.body.size());
        coming_[index] = may_stay_ && frame.owner ? frame : Frame();
      }
      if (way_.leads() && way_.is_summed(index) && group_) {
        group_->publish(index, {frame.header.generation, frame.header.step},
                        (frame.header.flags & net::kFlagFinished) != 0, frame.body);
      }
      break;
    }
    case ReplyPlan::kText:
      if (frame.header.kind == FrameKind::kConfig &&
          !std::ranges::equal(frame.body, std::as_bytes(std::span(config_json_)))) {
        if (checks_.may_differ()) {
          break;  // run() notices it, or a later pull does
        }
        world_.violate(name() + " was sent another configuration than the chief's");
      }
      break;
  }
  session_.body(index, now());
}

// --------------------------------------------------------------------- the session's effects

Routine<void> TrainerProcess::perform(Fiber& fiber) {
  std::vector<roles::TrainerOutbox::Effect> effects;
  while (!session_.out().effects().empty()) {
    effects = session_.out().effects();
    session_.out().clear();
    for (const roles::TrainerOutbox::Effect& effect : effects) {
      if (const auto* const order = std::get_if<roles::Dial>(&effect)) {
        co_await dial(fiber, *order);
      } else {
        const auto* const request = std::get_if<roles::SendRequest>(&effect);
        if (request != nullptr && request->header.kind == FrameKind::kPushPull) {
          co_await choose_way(fiber, request->header);
        }
        apply(effect);
      }
    }
  }
}

void TrainerProcess::apply(const roles::TrainerOutbox::Effect& effect) {
  if (const auto* const request = std::get_if<roles::SendRequest>(&effect)) {
    send(*request);
  } else if (const auto* const link = std::get_if<roles::CloseLink>(&effect)) {
    close(links_[link->range].channel);
  } else if (const auto* const name = std::get_if<roles::NameGeneration>(&effect)) {
    set_generation(name->generation);
  } else if (const auto* const other = std::get_if<roles::TakeIncarnation>(&effect)) {
    take_incarnation_above(other->above);
  } else if (const auto* const line = std::get_if<roles::Note>(&effect)) {
    note(line->text);
  }
}

void TrainerProcess::send(const roles::SendRequest& order) {
  Channel& channel = links_[order.range].channel;
  if (!channel.is_open) {
    session_.lost(order.range, std::make_error_code(std::errc::not_connected), now());
    return;
  }
  Frame frame{.header = order.header};
  switch (order.body) {
    case RequestBody::kNone:
      break;
    case RequestBody::kConfiguration: {
      const auto text = std::make_shared<std::string>(config_json_);
      frame.body = std::as_bytes(std::span(*text));
      frame.owner = text;
      break;
    }
    case RequestBody::kState: {
      const auto bytes = std::make_shared<Bytes>();
      for (const Values& tensor : state_->tensors) {
        const auto part = part_of(tensor, order.range);
        bytes->insert(bytes->end(), part.begin(), part.end());
      }
      frame.body = *bytes;
      frame.owner = bytes;
      break;
    }
    case RequestBody::kGradient:
      frame.is_torn = is_torn_ || is_misled_ || comes_misled_;
      if (way_.is_summed(order.range)) {
        frame.header = way_.marked(frame.header, order.range);
        if (way_.leads()) {
          frame.body = part_of(*sum_, order.range);
          frame.owner = sum_;
        }
      } else if (is_shared_) {
        frame.in_place = {.bytes = part_of(*gradient_, order.range), .owner = gradient_};
      } else {
        frame.body = part_of(*gradient_, order.range);
        frame.owner = gradient_;
      }
      break;
  }
  if (order.header.kind == FrameKind::kRestore) {
    checks_.began(order.header.generation, config_);
  }
  if (order.header.kind == FrameKind::kRestore && (order.header.flags & net::kFlagFinished) != 0) {
    world_.mark(Mark::kRestoredToEarlyStop);
  }
  if ((order.header.flags & net::kFlagPrevious) != 0) {
    world_.mark(Mark::kPrevious);
    note("asks ps " + std::to_string(order.range) + " for the parameters of the step before");
  }
  network_.send(channel.id, *this, std::move(frame));
  session_.sent(order.range, now());
}

Routine<void> TrainerProcess::dial(Fiber& fiber, roles::Dial order) {
  leave_group();
  check_awake(order.until);
  Link& link = links_[order.range];
  was_opened_again_ = was_opened_again_ || link.was_open;
  open(link.channel, fiber, order.host.index,
       {.cluster = {},
        .from = task_.self,
        .to = order.host,
        .purpose = net::ChannelPurpose::kStep,
        .replica = order.replica,
        .incarnation = incarnation_,
        .last = order.last});
  while (!link.channel.has_frame() && link.channel.is_open && now() < order.until &&
         !stop_requested_) {
    co_await wait(fiber, order.until);
  }
  throw_if_stopped();
  roles::DialAnswer answer = std::make_error_code(std::errc::timed_out);
  if (link.channel.has_frame()) {
    const Frame frame = take(link.channel);
    net::Welcome welcome;
    net::Refusal refusal;
    if (frame.header.kind == FrameKind::kWelcome && !net::decode(frame.body, welcome)) {
      answer = welcome;
    } else if (frame.header.kind == FrameKind::kRefused && !net::decode(frame.body, refusal)) {
      answer = refusal;
    }
  }
  if (!std::holds_alternative<net::Welcome>(answer)) {
    close(link.channel);
  }
  check_awake();
  look_at_incarnations(awake_.now());
  session_.dialed(order.range, order.attempt, answer, awake_.now());
  const auto* const welcome = std::get_if<net::Welcome>(&answer);
  link.was_open = link.was_open || welcome != nullptr;
  if (welcome != nullptr && session_.range(order.range).is_open() &&
      std::exchange(link.incarnation, welcome->incarnation) != 0) {
    world_.mark(Mark::kReconnect);
  }
}

}  // namespace disttf::sim
