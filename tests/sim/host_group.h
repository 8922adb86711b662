// What the trainers of one simulated host have between them: what net/transport/host_group.h does
// with sockets and memory of the host's own, which no cable cuts. Who waits is woken; nothing here
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "net/wire/generation.h"
#include "tests/sim/workload.h"

namespace disttf::sim {

class Process;

class HostGroup {
 public:
  // A gradient, or parameters: of which generation and step. Later states have higher ones.
  using Name = std::pair<net::Generation, std::uint64_t>;
  enum class Standing : std::uint8_t { kWaits, kAll, kNever };

  // `wake`: something has happened that this process may wait for.
  HostGroup(std::size_t members, std::function<void(Process&)> wake)
      : seats_(members), wake_(std::move(wake)) {}

  // --- the leader's
  void lead(Process& leader) { leader_ = &leader; }
  // It does not run, and does not leave either.
  [[nodiscard]] bool has_frozen_leader() const;
  [[nodiscard]] bool is_led_by(const Process& process) const noexcept {
    return leader_ == &process;
  }
  [[nodiscard]] bool has_leader() const noexcept { return leader_ != nullptr; }
  // All members were here before this call; those that have come since are taken in.
  [[nodiscard]] bool gather();
  [[nodiscard]] Standing standing(const Name& name) const;
  [[nodiscard]] std::span<const float> gradient(std::size_t member) const {
    return *seats_[member].gradient;
  }
  void tell(const Name& name, std::uint64_t summed);
  // `is_result`: of the run, which with averages differs from the parameters of that step.
  void publish(std::size_t range, const Name& name, bool is_result,
               std::span<const std::byte> parameters);

  // --- a member's
  void come(std::size_t member, Process& process);
  // It has come, and neither has left.
  [[nodiscard]] bool has(std::size_t member, const Process& process) const noexcept {
    return leader_ != nullptr && seats_[member].process == &process;
  }
  [[nodiscard]] bool takes_offers_of(std::size_t member, const Process& process) const noexcept {
    return has(member, process) && seats_[member].is_in;
  }
  void offer(std::size_t member, const Name& name, std::shared_ptr<const Values> gradient);
  [[nodiscard]] std::optional<std::uint64_t> verdict(std::size_t member, const Name& name) const;
  // Of that range and name; nothing: they are not there. They stay when the leader has left.
  [[nodiscard]] std::optional<std::span<const std::byte>> parameters(std::size_t range,
                                                                     const Name& name,
                                                                     bool is_result) const;

  // Parameters of a later state than that.
  [[nodiscard]] bool has_newer(std::size_t range, const Name& name) const {
    return range < published_.size() && published_[range] && published_[range]->name > name;
  }

  // Either: it leaves, or is no more. The others find out.
  void leave(const Process& process);

 private:
  struct Seat {
    Process* process = nullptr;
    bool is_in = false;  // the leader expects offers of it
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

// Where the members of a host find their leader: the one that has said so last. Those who have come
// to one before it stay with that one, as long as it is there.
struct SimulatedHost {
  std::size_t members = 0;
  std::function<void(Process&)> wake;
  std::shared_ptr<HostGroup> announced = {};
};

}  // namespace disttf::sim
