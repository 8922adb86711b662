// The updates that a copy of a shard has received but not applied, and the state that the first of
// them starts from. They lie in memory of the primary. A value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace disttf::roles {

class DeferredUpdates {
 public:
  struct Update {
    std::span<const float> gradient;
    std::size_t count = 0;   // of trainers
    std::uint64_t step = 0;  // of the parameters that it starts from
    std::shared_ptr<const void> memory;
  };

  // `state`: that the update starts from; earlier updates are then dropped, as their result is part
  // of it. Empty: the update follows the deferred ones.
  void add(Update update, std::span<const float> state) {
    if (!state.empty()) {
      updates_.clear();
      state_ = state;
    }
    updates_.push_back(std::move(update));
  }
  void clear() noexcept { updates_.clear(); }
  [[nodiscard]] bool is_empty() const noexcept { return updates_.empty(); }
  [[nodiscard]] std::span<const Update> updates() const noexcept { return updates_; }
  [[nodiscard]] std::span<const float> state() const noexcept { return state_; }

 private:
  std::vector<Update> updates_;
  std::span<const float> state_;
};

}  // namespace disttf::roles
