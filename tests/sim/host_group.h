// What the trainers of one simulated host share. It stands for net/memory/host_group.h, which
// uses sockets and the host's memory, so network faults do not affect it. Nothing here waits:
// waiting processes are woken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/wire/frame.h"
#include "tests/sim/workload.h"

namespace disttf::sim {

class Process;

class HostGroup {
 public:
  // A gradient or parameters, by generation and step. Later states compare higher.
  using Name = std::pair<net::Generation, std::uint64_t>;
  enum class Standing : std::uint8_t { kWaits, kAll, kNever };

  // `wake`: called when something has happened that this process may wait for.
  HostGroup(std::size_t members, std::function<void(Process&)> wake)
      : seats_(members), wake_(std::move(wake)) {}

  // --- for the leader
  void lead(Process& leader) { leader_ = &leader; }
  // Returns whether the leader is suspended but has not left.
  [[nodiscard]] bool has_frozen_leader() const;
  [[nodiscard]] bool is_led_by(const Process& process) const noexcept {
    return leader_ == &process;
  }
  [[nodiscard]] bool has_leader() const noexcept { return leader_ != nullptr; }
  // Returns whether all members had joined before this call. Admits those that have joined since.
  [[nodiscard]] bool gather();
  [[nodiscard]] Standing standing(const Name& name) const;
  [[nodiscard]] std::span<const float> gradient(std::size_t member) const {
    return *seats_[member].gradient;
  }
  void tell(const Name& name, std::uint64_t summed);
  // `is_result`: the run's result, which with averages differs from the parameters of that step.
  void publish(std::size_t range, const Name& name, bool is_result,
               std::span<const std::byte> parameters);

  // --- for a member
  void come(std::size_t member, Process& process);
  // Returns whether the member has joined and neither side has left.
  [[nodiscard]] bool has(std::size_t member, const Process& process) const noexcept {
    return leader_ != nullptr && seats_[member].process == &process;
  }
  [[nodiscard]] bool takes_offers_of(std::size_t member, const Process& process) const noexcept {
    return has(member, process) && seats_[member].is_in;
  }
  void offer(std::size_t member, const Name& name, std::shared_ptr<const Values> gradient);
  [[nodiscard]] std::optional<std::uint64_t> verdict(std::size_t member, const Name& name) const;
  // Returns the parameters of that range and name, or nullopt if there are none. They remain after
  // the leader has left.
  [[nodiscard]] std::optional<std::span<const std::byte>> parameters(std::size_t range,
                                                                     const Name& name,
                                                                     bool is_result) const;

  // Returns whether there are parameters of a later state.
  [[nodiscard]] bool has_newer(std::size_t range, const Name& name) const {
    return range < published_.size() && published_[range] && published_[range]->name > name;
  }

  // The process leaves or is dead. The other processes notice.
  void leave(const Process& process);

 private:
  struct Seat {
    Process* process = nullptr;
    bool is_in = false;  // the leader expects gradients from it
    std::optional<Name> offered;
    std::shared_ptr<const Values> gradient;
    std::optional<std::pair<Name, std::uint64_t>> told;
  };
  struct Published {
    Name name;
    bool is_result = false;
    std::vector<std::byte> parameters;
  };

  std::vector<Seat> seats_;
  Process* leader_ = nullptr;
  std::vector<std::optional<Published>> published_;  // by range
  std::function<void(Process&)> wake_;
};

// Where the members of a host find their leader: the latest that has announced itself. Members of
// an earlier leader stay with it as long as it is there.
struct SimulatedHost {
  std::size_t members = 0;
  std::function<void(Process&)> wake;
  std::shared_ptr<HostGroup> announced = {};
};

}  // namespace disttf::sim
