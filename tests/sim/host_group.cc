#include "tests/sim/host_group.h"

#include <algorithm>

#include "tests/sim/process.h"

namespace disttf::sim {

bool HostGroup::has_frozen_leader() const { return leader_ != nullptr && leader_->is_frozen(); }

bool HostGroup::gather() {
  bool were_here = true;
  for (Seat& seat : seats_) {
    were_here = were_here && seat.is_in;
    seat.is_in = seat.process != nullptr;
  }
  return were_here;
}

// A member that has offered a later gradient will not offer this one any more.
HostGroup::Standing HostGroup::standing(const Name& name) const {
  Standing standing = Standing::kAll;
  for (const Seat& seat : seats_) {
    if (!seat.is_in || (seat.offered && *seat.offered > name)) {
      return Standing::kNever;
    }
    if (seat.offered != name) {
      standing = Standing::kWaits;
    }
  }
  return standing;
}

void HostGroup::tell(const Name& name, std::uint64_t summed) {
  for (Seat& seat : seats_) {
    if (seat.is_in) {
      seat.told = {name, summed};
      wake_(*seat.process);
    }
  }
}

void HostGroup::publish(std::size_t range, const Name& name, bool is_result,
                        std::span<const std::byte> parameters) {
  published_.resize(std::max(published_.size(), range + 1));
  published_[range] = {
      .name = name, .is_result = is_result, .parameters = {parameters.begin(), parameters.end()}};
  for (const Seat& seat : seats_) {
    if (seat.process != nullptr) {
      wake_(*seat.process);
    }
  }
}

void HostGroup::come(std::size_t member, Process& process) {
  if (leader_ != nullptr && seats_[member].process != &process) {
    seats_[member] = {};
    seats_[member].process = &process;
  }
}

void HostGroup::offer(std::size_t member, const Name& name,
                      std::shared_ptr<const Values> gradient) {
  Seat& seat = seats_[member];
  seat.offered = name;
  seat.gradient = std::move(gradient);
  wake_(*leader_);
}

// A decision about a later gradient means that this one is not waited for.
std::optional<std::uint64_t> HostGroup::verdict(std::size_t member, const Name& name) const {
  const auto& told = seats_[member].told;
  if (!told || told->first < name) {
    return std::nullopt;
  }
  return told->first == name ? told->second : 0;
}

std::optional<std::span<const std::byte>> HostGroup::parameters(std::size_t range, const Name& name,
                                                                bool is_result) const {
  if (range >= published_.size() || !published_[range] || published_[range]->name != name ||
      published_[range]->is_result != is_result) {
    return std::nullopt;
  }
  return published_[range]->parameters;
}

void HostGroup::leave(const Process& process) {
  const bool led = leader_ == &process;
  for (Seat& seat : seats_) {
    if (led && seat.process != nullptr) {
      wake_(*seat.process);
    }
    if (led || seat.process == &process) {
      seat = {};
    }
  }
  if (led) {
    leader_ = nullptr;
  } else if (leader_ != nullptr) {
    wake_(*leader_);
  }
}

}  // namespace disttf::sim
