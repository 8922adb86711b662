#include "tests/sim/evaluator.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "net/wire/bare_message.h"
#include "net/wire/messages.h"
#include "net/wire/snapshot_messages.h"

namespace disttf::sim {

using std::chrono::milliseconds;

namespace {

constexpr milliseconds kEvaluatorDialLimit{2000};
constexpr milliseconds kEvaluatorPause{100};
constexpr std::uint64_t kToTheEnd = std::numeric_limits<std::uint64_t>::max();

}  // namespace

EvaluatorProcess::EvaluatorProcess(World& world, Network& network, Checks& checks,
                                   const roles::RunConfig& config, Duration every, roles::Task task,
                                   std::size_t node, std::size_t size, OnEnd on_end)
    : ScoringProcess(world, network, std::move(task), node, std::move(on_end)),
      checks_(checks),
      ranges_(task_.cluster.ps.size()),
      has_replicas_(config.ps_replicas > 1),
      every_(every),
      plan_(ranges_),
      parameters_(size),
      generations_(ranges_) {
  for (std::size_t index = 0; index < ranges_; ++index) {
    links_.push_back(std::make_unique<Link>());
  }
}

void EvaluatorProcess::start() {
  gone_since_ = now();
  spawn([this](Fiber& fiber) { return live(fiber); });
}

void EvaluatorProcess::terminate() { exit(roles::kTerminated, "SIGTERM"); }

Routine<void> EvaluatorProcess::live(Fiber& fiber) {
  while (!is_over_) {
    const bool is_there = co_await reach_all(fiber);
    if (is_there) {
      co_await listen(fiber);
      continue;
    }
    if (now() - gone_since_ > task_.timeouts.peer) {
      throw roles::Failure(roles::kLostPeers, "the ps cannot be reached");
    }
    co_await sleep(fiber, kEvaluatorPause);
  }
  exit(roles::kDone,
       has_result_ ? "has scored the result"
                   : "the run is over; its final parameters were lost with a parameter server");
}

Routine<bool> EvaluatorProcess::reach_all(Fiber& fiber) {
  for (std::size_t index = 0; index < ranges_; ++index) {
    Link& link = *links_[index];
    bool is_there = link.has_last || link.channel.is_open;
    if (!is_there) {
      is_there = co_await reach(fiber, index);
    }
    if (!is_there) {
      lose();
      co_return false;
    }
  }
  known_since_ = std::min(known_since_, world_.now());
  waits_for_end_ = true;
  watch_all(kToTheEnd);
  co_return true;
}

// Connects to the primary of the range, which may be either of its two hosts.
Routine<bool> EvaluatorProcess::reach(Fiber& fiber, std::size_t index) {
  Link& link = *links_[index];
  for (std::uint8_t replica = 0; replica < (has_replicas_ ? 2 : 1); ++replica) {
    const net::TaskId host = roles::host_of_range(task_.cluster, index, replica);
    open(link.channel, fiber, host.index,
         {.cluster = {},
          .from = task_.self,
          .to = host,
          .purpose = net::ChannelPurpose::kState,
          .replica = replica,
          .incarnation = task_.incarnation});
    const Time deadline = now() + kEvaluatorDialLimit;
    while (link.channel.is_open && !link.channel.has_frame() && now() < deadline) {
      co_await wait(fiber, deadline);
    }
    net::Welcome welcome;
    if (link.channel.has_frame()) {
      const Frame answer = take(link.channel);
      const bool is_welcome =
          answer.header.kind == net::FrameKind::kWelcome && !net::decode(answer.body, welcome) &&
          (!has_replicas_ || welcome.replica_role == net::ReplicaRole::kPrimary);
      if (is_welcome && link.channel.is_open) {
        plan_.saw(welcome.step);
        link.heard = now();
        co_return true;
      }
    }
    close(link.channel);
  }
  co_return false;
}

void EvaluatorProcess::watch(Link& link, std::uint64_t step) {
  const net::Watch order{.request_id = ++link.requests, .step = step};
  network_.send(link.channel.id, *this, order.to_header());
}

void EvaluatorProcess::watch_all(std::uint64_t step) {
  for (const auto& link : links_) {
    if (!link->has_last) {
      watch(*link, step);
    }
  }
}

Routine<void> EvaluatorProcess::listen(Fiber& fiber) {
  for (;;) {
    if (waits_for_end_ && now() >= next_) {
      waits_for_end_ = false;
      watch_all(plan_.begin());
    }
    Time until = waits_for_end_ ? next_ : Time::max();
    for (std::size_t index = 0; index < ranges_; ++index) {
      if (!receive(index)) {
        co_return;
      }
      if (!links_[index]->has_last) {
        until = std::min(until, links_[index]->heard + task_.timeouts.heartbeat_timeout);
      }
    }
    gone_since_ = now();
    if (!judge()) {
      co_return;
    }
    co_await wait(fiber, until);
  }
}

bool EvaluatorProcess::receive(std::size_t index) {
  Link& link = *links_[index];
  while (!link.has_last && link.channel.has_frame()) {
    const Frame frame = take(link.channel);
    link.heard = now();
    if (net::is_bodiless<net::Heartbeat>(frame.header)) {
      continue;
    }
    if (net::is_bodiless<net::Ack>(frame.header)) {
      is_over_ = true;
      return false;
    }
    if (!take_part(index, frame)) {
      lose();
      return false;
    }
  }
  const bool is_lost =
      !link.channel.is_open || now() - link.heard >= task_.timeouts.heartbeat_timeout;
  if (!link.has_last && is_lost) {
    lose();
    return false;
  }
  return true;
}

bool EvaluatorProcess::take_part(std::size_t index, const Frame& frame) {
  const math::Range range = checks_.range(index);
  net::SnapshotShardReply snapshot;
  if (snapshot.from_header(frame.header)) {
    return false;  // REFUSED: the ps ends
  }
  if (snapshot.range_begin != range.begin || frame.body.size() != range.size() * sizeof(float)) {
    world_.violate(name() + " was sent another range than that of ps " + std::to_string(index));
    return false;
  }
  std::memcpy(parameters_.data() + range.begin, frame.body.data(), frame.body.size());
  generations_[index] = snapshot.generation;
  plan_.took(
      index,
      {.step = snapshot.step, .generation = snapshot.generation, .is_last = snapshot.is_result});
  Link& link = *links_[index];
  if (snapshot.is_result) {
    link.has_last = true;
    close(link.channel);
  } else {
    watch(link, kToTheEnd);
  }
  return true;
}

bool EvaluatorProcess::judge() {
  using State = roles::SnapshotPlan::State;
  const State state = plan_.state();
  const bool is_result = state == State::kResult;
  if (is_result || (state == State::kWhole && !waits_for_end_)) {
    world_.mark(is_result ? Mark::kResultScored : Mark::kSnapshotScored);
    checks_.snapshot_scored(name(), plan_.step(), generations_, is_result, parameters_);
    waits_for_end_ = true;
    next_ = now() + every_;
    has_result_ = is_result;
    is_over_ = is_result;
  } else if (state == State::kTorn && !waits_for_end_) {
    world_.mark(Mark::kTornSnapshot);
    watch_all(plan_.begin());
  }
  return !is_over_;
}

void EvaluatorProcess::lose() {
  for (const auto& link : links_) {
    close(link->channel);
  }
  plan_.lost();
}

}  // namespace disttf::sim
