#include "roles/trainer/shell/host_sum.h"

#include <algorithm>

#include "math/norm.h"
#include "net/wire/messages.h"
#include "run/process/log.h"

namespace disttf::roles {
namespace {

// The pause, in gradients, between attempts to meet the group: 1, then 2, 4 and so on, up to this
// number.
constexpr std::uint64_t kMaxStepsBetweenDiscoveries = 256;
// The core must not depend on the transport.
static_assert(GroupWay::kMostRanges == net::kMostSummedRanges);

net::StateOf state_of(const net::FrameHeader& header) noexcept {
  return {.generation = header.generation, .step = header.step};
}

net::PublishedParameters parameters_of(std::size_t range, const net::FrameHeader& header) noexcept {
  return {.range = range,
          .of = state_of(header),
          .is_result = (header.flags & net::kFlagFinished) != 0};
}

}  // namespace

HostSum::HostSum(const Task& task, const StopSignal& stop)
    : task_(task), stop_(stop), way_(task.cluster, task.cluster.rank_of(task.self)) {}

void HostSum::prepare(std::size_t size, math::Isa isa) {
  // The group of the previous run does not fit the new size.
  leave();
  size_ = way_.has_neighbours() ? size : 0;
  isa_ = isa;
  if (is_possible() && way_.leads()) {
    tree_.emplace(way_.members() + 1, size, isa);
  }
}

bool HostSum::is_likely() {
  return leader_ ? leader_->present() == way_.members() : member_ && member_->is_taken_in();
}

// ----------------------------------------------------------------------------------------- meeting

std::error_code HostSum::discover_peers(PsLink& link, Ranges remote) {
  if (!is_possible()) {
    return {};
  }
  std::error_code ignored;  // for any error, each trainer pushes its own gradient
  // If all ps read gradients in shared memory, a sum saves nothing.
  if (remote == 0) {
    leave();
    return {};
  }
  net::PeerDiscovery discovery;
  if (way_.leads()) {
    if (!leader_) {
      leader_ = net::GroupLeader::open(size_ * sizeof(float), way_.members(), ignored);
    }
    if (!leader_) {
      return {};
    }
    discovery.listener_name = leader_->leader_address().listener_name;
    discovery.token = leader_->leader_address().token;
  } else if (is_met()) {
    return {};
  }
  if (const auto error = link.ask(discovery)) {
    return error;
  }
  if (!way_.leads() && discovery.listener_name != 0) {
    member_ = net::GroupMember::connect(
        {.listener_name = discovery.listener_name, .token = discovery.token}, size_ * sizeof(float),
        way_.member(), ignored);
  }
  // No error: the group cannot be used, so every trainer pushes its own gradient.
  return {};
}

bool HostSum::is_met() const noexcept {
  return way_.leads() ? leader_ != nullptr : member_ != nullptr && member_->is_open();
}

bool HostSum::is_discovery_due() noexcept {
  if (!is_possible() || is_met() || --discover_in_ != 0) {
    return false;
  }
  // Doubled: an attempt costs a round trip to ps 0, and the group may never be complete.
  discover_in_ = discover_after_;
  discover_after_ = std::min(2 * discover_after_, kMaxStepsBetweenDiscoveries);
  return true;
}

void HostSum::leave() noexcept {
  leader_.reset();
  if (member_) {
    member_->close();
  }
}

// ---------------------------------------------------------------------------------------- pushing

void HostSum::choose(const net::FrameHeader& push, std::span<const float> gradient, Ranges remote,
                     bool has_begun) {
  if (way_.knows(push.generation, push.step)) {
    return;
  }
  // Until decided, a repeat of this push would be sent without a sum.
  way_.begin(push.generation, push.step);
  awaits_leader_ = false;
  pushed_ = state_of(push);
  const Ranges summed =
      // A member always answers its leader, even if its own push has begun: the leader would wait
      // otherwise.
      way_.leads() ? gather(pushed_, gradient, has_begun ? 0 : remote) : offer(pushed_, gradient);
  if (has_begun) {  // that a leader sends the sum as well does no harm
    return;
  }
  way_.decide(summed);
  awaits_leader_ = !way_.leads() && summed != 0;
  heard_ = net::Clock::now();
  beat_at_ = heard_ + kHeartbeatInterval;
  if (summed != 0) {  // if the group breaks up, meet it again soon
    discover_in_ = 1;
    discover_after_ = 1;
  }
  if (summed != 0 && !std::exchange(was_summed_, true) && way_.leads()) {
    log_info("pushes the gradients of the " + std::to_string(way_.members() + 1) +
             " trainers of this host as one");
  }
}

HostSum::Ranges HostSum::gather(const net::StateOf& of, std::span<const float> gradient,
                                Ranges remote) {
  if (!leader_) {
    return 0;
  }
  // A missing or late member means that all push their own gradients.
  const bool is_whole = leader_->gather(of, stop_.interrupt(), wait_until());
  const Ranges summed = is_whole && add_up(gradient) && leader_->stands() ? remote : 0;
  // Members wait for a verdict in any case, so it is sent also if there is no sum.
  leader_->tell({.of = of, .summed = summed});
  return summed;
}

// Non-finite sums are not pushed: each ps then judges the single gradients, and can name the
// trainer.
bool HostSum::add_up(std::span<const float> gradient) {
  // In the order of ranks, as a ps adds them: the sum is bit-identical.
  tree_->clear();
  tree_->add(0, gradient, {});
  for (std::size_t member = 0; member < way_.members(); ++member) {
    const std::span<const std::byte> bytes = leader_->gradient(member);
    tree_->add(1 + member, {reinterpret_cast<const float*>(bytes.data()), size_}, {});
  }
  sum_ = tree_->whole();
  return math::all_finite(sum_, isa_);
}

HostSum::Ranges HostSum::offer(const net::StateOf& of, std::span<const float> gradient) {
  if (!member_ || !member_->is_taken_in()) {
    return 0;
  }
  const auto verdict = member_->offer(of, std::as_bytes(gradient), stop_.interrupt(), wait_until());
  // No verdict in time: the leader is late or gone.
  return verdict ? verdict->summed : 0;
}

// ------------------------------------------------------------------------------------- the answers

void HostSum::publish(std::size_t range, const net::FrameHeader& header, std::size_t offset,
                      std::span<const float> parameters) {
  // Members read the parameters in the leader's memory, so a ps sends them to this host once.
  if (leader_ && way_.is_summed(range)) {
    leader_->publish(parameters_of(range, header), offset * sizeof(float),
                     std::as_bytes(parameters));
  }
}

std::error_code HostSum::take(std::size_t range, const net::FrameHeader& header, std::size_t offset,
                              std::span<float> into) {
  if (way_.leads() || !way_.is_summed(range) || !member_ || header.body_size != 0) {
    return net::WireError::kBadBody;
  }
  const bool is_there =
      member_->take(parameters_of(range, header), offset * sizeof(float),
                    std::as_writable_bytes(into), stop_.interrupt(), wait_until());
  if (!is_there) {
    // The ps that has sent the answer is asked again, with this trainer's own gradient.
    way_.part_from(range);
    return std::make_error_code(std::errc::connection_aborted);
  }
  return {};
}

int HostSum::fd() const noexcept { return awaits_leader_ && member_ ? member_->fd() : -1; }

// Members count a leader without heartbeats as lost.
void HostSum::beat(net::Deadline now) {
  if (leader_ && now >= beat_at_) {
    beat_at_ = now + kHeartbeatInterval;
    leader_->beat();
  }
}

// What the leader left before it went is still readable. (While the push is unanswered each ps
// sends heartbeats, so this is called often enough.)
HostSum::Ranges HostSum::lost(net::Deadline now) {
  if (!awaits_leader_ || !member_) {
    return 0;
  }
  const bool is_open = member_->look();
  // What has arrived counts, even if the leader has gone since.
  heard_ = member_->has_received() ? now : heard_;
  if (is_open && now < heard_ + task_.timeouts.heartbeat_timeout) {
    return 0;
  }
  // From here on the leader's memory is read, but nothing is awaited in it.
  member_->stop();
  awaits_leader_ = false;
  Ranges answered = 0;
  for (std::size_t range = 0; range < GroupWay::kMostRanges; ++range) {
    // A ps whose answer the leader has left has made the step, so that answer is read instead.
    answered |= member_->has_newer(range, pushed_) ? Ranges{1} << range : 0;
  }
  return way_.part(answered);
}

}  // namespace disttf::roles
