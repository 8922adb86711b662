// Chooses the step that a task watching a run requests from all ps, so that the answers form one
// snapshot: the parameters of one step of one state of the run. Each ps answers with the first step
// at or after the requested one, so that step must be ahead of all ps when the last one is asked;
// how far ahead is adapted. When the run is over, all ps answer with its result.
//
// A state machine without timers. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/wire/frame.h"

namespace disttf::roles {

class SnapshotPlan {
 public:
  struct Part {
    std::uint64_t step = 0;
    net::Generation generation = 0;
    bool is_last = false;  // the run is over, and this is of its result
  };
  enum class State : std::uint8_t {
    kIncomplete,
    kWhole,   // all shards are of one step
    kTorn,    // they are not: begin() again
    kResult,  // all shards are of the result
  };

  explicit SnapshotPlan(std::size_t ps) : parts_(ps) {}

  // A ps has reached this step.
  void saw(std::uint64_t step) noexcept;
  // Begins the next snapshot. Returns the step to request from all ps. Shards of the previous
  // snapshot are dropped, except for those of the result.
  [[nodiscard]] std::uint64_t begin() noexcept;
  // The answer of ps `index`.
  void took(std::size_t index, const Part& part);
  [[nodiscard]] State state() const noexcept;
  // Returns the snapshot's step. REQUIRES: it is complete, or is the result.
  [[nodiscard]] std::uint64_t step() const noexcept { return parts_.front()->step; }
  // The ps were lost. Drops all shards except those of the result, after which a run is never
  // rolled back.
  void lost() noexcept;

 private:
  void drop_parts() noexcept;

  std::vector<std::optional<Part>> parts_;  // by ps
  std::uint64_t newest_ = 0;                // a step that a ps is known to have reached
  std::uint64_t ahead_ = 1;
};

}  // namespace disttf::roles
