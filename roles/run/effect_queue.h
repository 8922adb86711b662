// What a core wants done, in order: whoever called it takes the effects after each call, and so
// does a test.
#pragma once

#include <utility>
#include <variant>
#include <vector>

namespace disttf::roles {

// `Kinds`: plain records, each an order to the shell.
template <typename... Kinds>
class EffectQueue {
 public:
  using Effect = std::variant<Kinds...>;

  template <typename Kind>
  void add(Kind effect) {
    effects_.emplace_back(std::move(effect));
  }

  // Hands each to `carry_out`, also those that it makes the core add, and forgets them.
  template <typename CarryOut>
  void drain(CarryOut carry_out) {
    while (!effects_.empty()) {
      std::vector<Effect> taken;
      std::swap(taken, effects_);
      for (Effect& effect : taken) {
        std::visit(carry_out, effect);
      }
    }
  }
  [[nodiscard]] const std::vector<Effect>& effects() const noexcept { return effects_; }

 private:
  std::vector<Effect> effects_;
};

}  // namespace disttf::roles
