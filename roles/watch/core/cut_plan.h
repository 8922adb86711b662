// Which step whoever watches a run asks all ps for, so that what they answer is one cut: the
// parameters of one step of one state of the run. Each ps answers with the first step from the one
// on that was asked for, so that must be ahead of all of them when the last one is asked: how far,
// is learnt. And when the run is over, all of them answer with its result.
//
// A state machine without time. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/wire/generation.h"

namespace disttf::roles {

class CutPlan {
 public:
  struct Part {
    std::uint64_t step = 0;
    net::Generation generation = 0;
    bool is_last = false;  // the run is over: of its result
  };
  enum class State : std::uint8_t {
    kIncomplete,
    kWhole,   // all parts are of one step
    kTorn,    // they are not: begin() again
    kResult,  // all are of the result
  };

  explicit CutPlan(std::size_t ps) : parts_(ps) {}

  // A ps is there already.
  void saw(std::uint64_t step) noexcept;
  // For the next cut: the step that all ps are to be asked for. The parts of the one before are
  // none of it, but for those of the result.
  [[nodiscard]] std::uint64_t begin() noexcept;
  // What ps `index` has answered.
  void took(std::size_t index, const Part& part);
  [[nodiscard]] State state() const noexcept;
  // Of the cut. REQUIRES: it is whole, or of the result.
  [[nodiscard]] std::uint64_t step() const noexcept { return parts_.front()->step; }
  // The ps were lost, and with them all parts but those of the result, after which a run is never
  // set back.
  void lost() noexcept;

 private:
  void drop_parts() noexcept;

  std::vector<std::optional<Part>> parts_;  // by ps
  std::uint64_t newest_ = 0;                // step that a ps is known to have been at
  std::uint64_t ahead_ = 1;
};

}  // namespace disttf::roles
