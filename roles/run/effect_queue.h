// What a core wants done, in order: whoever called it takes the effects after each call, and so
// does a test.
#pragma once

#include <utility>
#include <variant>
#include <vector>

namespace disttf::roles {

// `Kinds`: plain records, each an order to the shell. Keeps its memory, so that a step allocates
// nothing.
template <typename... Kinds>
class EffectQueue {
 public:
  using Effect = std::variant<Kinds...>;

  template <typename Kind>
  void add(Kind effect) {
    effects_.emplace_back(std::move(effect));
  }

  // Hands each to `carry_out` and forgets it: also where that throws. `carry_out` may call the
  // core; what the core then wants is handed out after what it wanted before.
  template <typename CarryOut>
  void drain(CarryOut carry_out) {
    while (!effects_.empty()) {
      std::vector<Effect> taken = std::move(spare_);
      std::swap(taken, effects_);
      for (Effect& effect : taken) {
        std::visit(carry_out, effect);
      }
      taken.clear();
      spare_ = std::move(taken);
    }
  }
  [[nodiscard]] const std::vector<Effect>& effects() const noexcept { return effects_; }
  // Nothing of it is wanted any more.
  void clear() noexcept { effects_.clear(); }

 private:
  std::vector<Effect> effects_;
  std::vector<Effect> spare_;  // empty: memory for the next
};

}  // namespace disttf::roles
