// What a core asks of its shell: a queue of effects, and the log line among them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace disttf::roles {

// The effects of a core, in order: its caller, or a test, takes them after each call. `Kinds`:
// plain records, each a request to the shell. Keeps its memory, so that a step allocates nothing.
template <typename... Kinds>
class EffectQueue {
 public:
  using Effect = std::variant<Kinds...>;

  template <typename Kind>
  void add(Kind effect) {
    effects_.emplace_back(std::move(effect));
  }

  // Passes each effect to `carry_out` and removes it, even if that throws. `carry_out` may call the
  // core; effects that this adds are handed out after those before.
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
  // Drops all effects.
  void clear() noexcept { effects_.clear(); }

 private:
  std::vector<Effect> effects_;
  std::vector<Effect> spare_;  // empty: memory for reuse
};

// A log line, as a core puts it into its effects; run/process/log.h writes it.
struct Note {
  enum class Level : std::uint8_t { kInfo, kWarning, kDebug };
  Level level = Level::kInfo;
  std::string text;
};

}  // namespace disttf::roles
