// How a simulated trainer pushes if other trainers share its host.
#include <algorithm>
#include <cstring>
#include <system_error>

#include "math/tree_sum.h"
#include "tests/sim/session.h"

namespace disttf::sim {

using net::FrameHeader;

Routine<void> TrainerProcess::choose_way(Fiber& fiber, FrameHeader push) {
  if (host_ == nullptr || is_shared_ || way_.knows(push.generation, push.step)) {
    co_return;
  }
  way_.begin(push.generation, push.step);
  way_is_by_leader_ = false;
  const HostGroup::Name name{push.generation, push.step};
  pushed_ = name;
  std::uint64_t summed = 0;  // g++ 12 evaluates both operands if ?: has a co_await in each
  if (way_.leads()) {
    summed = co_await gather(fiber, name);
  } else {
    summed = co_await offer(fiber, name);
  }
  way_.decide(summed);
  check_awake();
}

Routine<std::uint64_t> TrainerProcess::gather(Fiber& fiber, HostGroup::Name name) {
  if (!group_) {
    group_ = std::make_shared<HostGroup>(host_->members, host_->wake);
    group_->lead(*this);
    host_->announced = group_;
  }
  const std::shared_ptr<HostGroup> group = group_;
  std::uint64_t summed = 0;
  if (group->gather()) {
    const Time until = now() + task_.timeouts.heartbeat_timeout;
    while (group->is_led_by(*this) && group->standing(name) == HostGroup::Standing::kWaits &&
           now() < until && !stop_requested_) {
      co_await wait(fiber, until);
    }
    if (group->standing(name) == HostGroup::Standing::kAll) {
      math::TreeSum tree(way_.members() + 1, size_, math::Isa::kGeneric);
      tree.add(0, *gradient_, {});
      for (std::size_t member = 0; member < way_.members(); ++member) {
        tree.add(1 + member, group->gradient(member), {});
      }
      const std::span<const float> whole = tree.whole();
      sum_ = std::make_shared<Values>(whole.begin(), whole.end());
      summed = summed_ranges_;
      world_.mark(Mark::kSummed);
    }
  }
  group->tell(name, summed);
  co_return summed;
}

Routine<std::uint64_t> TrainerProcess::offer(Fiber& fiber, HostGroup::Name name) {
  const std::size_t member = way_.member();
  if ((!group_ || !group_->has(member, *this)) && host_->announced) {
    group_ = host_->announced;
    group_->come(member, *this);
  }
  if (!group_) {
    co_return 0;
  }
  if (!group_->takes_offers_of(member, *this)) {
    co_return 0;
  }
  group_->offer(member, name, gradient_);
  const Time until = now() + task_.timeouts.heartbeat_timeout;
  while (group_->has(member, *this) && !group_->verdict(member, name) && now() < until &&
         !stop_requested_) {
    co_await wait(fiber, until);
  }
  const auto verdict = group_->has(member, *this) ? group_->verdict(member, name) : std::nullopt;
  if (!verdict) {
    group_->leave(*this);
  }
  way_is_by_leader_ = verdict.value_or(0) != 0;
  heard_ = now();
  co_return verdict.value_or(0);
}

// Handles the answer to a push that had no body.
Routine<void> TrainerProcess::receive_at_leader(Fiber& fiber, std::size_t index) {
  const Frame frame = take(links_[index].channel);
  const auto plan = session_.header(index, frame.header, now());
  if (plan != roles::ReplyPlan::kParameters || way_.leads() || !way_.is_summed(index)) {
    world_.violate(name() + " was sent a push's answer without a body, and had sent it one");
    co_return;
  }
  const HostGroup::Name state{frame.header.generation, frame.header.step};
  const bool is_result = (frame.header.flags & net::kFlagFinished) != 0;
  const Time until = now() + task_.timeouts.heartbeat_timeout;
  while (group_->has(way_.member(), *this) && !group_->parameters(index, state, is_result) &&
         now() < until && !stop_requested_) {
    co_await wait(fiber, until);
  }
  throw_if_stopped();
  check_awake();
  const auto there = group_->parameters(index, state, is_result);
  if (!there) {
    way_.part_from(index);
    group_->leave(*this);
    close(links_[index].channel);
    session_.lost(index, std::make_error_code(std::errc::connection_aborted), now());
    co_return;
  }
  const std::span<const std::byte> body = *there;
  const math::Range range = session_.range(index).range;
  if (body.size() != range.size() * sizeof(float)) {
    world_.violate(name() + " finds parameters of another size");
    co_return;
  }
  checks_.parameters_came(name(), index, frame.header, body);
  if (config_.ps_replicas > 1) {
    checks_.witnesses().has_seen(task_.incarnation, index,
                                 {state_of(index).lineage, frame.header.generation},
                                 frame.header.step);
  }
  if (!body.empty()) {
    std::memcpy(into_->data() + range.begin, body.data(), body.size());
  }
  coming_[index] = Frame();
  session_.body(index, now());
}

bool TrainerProcess::has_lost_leader() const noexcept {
  return way_is_by_leader_ &&
         (!group_->has(way_.member(), *this) || now() >= heard_ + task_.timeouts.heartbeat_timeout);
}

// The ps have recorded that this gradient is part of a sum, which no trainer pushes any more. This
// trainer repeats its push over new connections.
void TrainerProcess::push_without_leader() {
  if (!has_lost_leader()) {
    heard_ = group_ && group_->has_frozen_leader() ? heard_ : now();
    return;
  }
  group_->leave(*this);
  way_is_by_leader_ = false;
  std::uint64_t answered = 0;
  for (std::size_t index = 0; index < links_.size() && index < roles::GroupWay::kMostRanges;
       ++index) {
    answered |= group_->has_newer(index, pushed_) ? std::uint64_t{1} << index : 0;
  }
  const std::uint64_t summed = way_.part(answered);
  for (std::size_t index = 0; index < links_.size() && index < roles::GroupWay::kMostRanges;
       ++index) {
    if ((summed >> index & 1U) != 0 && session_.reads(index)) {
      close(links_[index].channel);
      session_.lost(index, std::make_error_code(std::errc::connection_aborted), now());
      world_.mark(Mark::kPushedWithoutLeader);
    }
  }
}

void TrainerProcess::leave_group() {
  if (group_) {
    group_->leave(*this);
  }
  if (way_.leads()) {
    group_.reset();
  }
}

void TrainerProcess::bury() {
  leave_group();
  FiberProcess::bury();
}

}  // namespace disttf::sim
