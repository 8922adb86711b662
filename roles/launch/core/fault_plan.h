// The faults of `launch --chaos SEED,RATE` and their steps, as a function of the seed.
//
// A fault belongs to a global step, not to a time. So a seed that made a run fail reproduces the
// same list of (step, task, fault), on a faster machine too. A random number per step decides
// whether it has a fault, at most one; no fault depends on an earlier one.
//
// Uses no clock and no process. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "run/task.h"

namespace disttf::roles {

struct ProcessFault {
  enum class Kind : std::uint8_t {
    kKill,    // SIGKILL
    kFreeze,  // SIGSTOP, and SIGCONT after `frozen_for`
  };
  // What is hit of a trainer with a user's own program. Of other tasks there is only the task.
  enum class Part : std::uint8_t { kAll, kTask, kProgram };
  std::uint64_t step = 0;  // due after this many updates
  std::size_t task = 0;
  Kind kind = Kind::kKill;
  Part part = Part::kAll;
  // 50 ms to 2 s: from less than a heartbeat to two missed ones. The only time in the plan: while a
  // task is frozen there may be no steps to count.
  std::chrono::milliseconds frozen_for{0};

  friend bool operator==(const ProcessFault&, const ProcessFault&) = default;
};

class FaultPlan {
 public:
  // `tasks`: the numbers of the tasks that faults may hit, with equal probability. REQUIRES: not
  // empty.
  FaultPlan(const ChaosOptions& options, std::vector<std::size_t> tasks);

  [[nodiscard]] std::optional<ProcessFault> at(std::uint64_t step) const;

  // Returns the faults due when the run has reached `step`, in order. The first call sets the start
  // of the run. Each fault is due once, even if the run rolls back before it: a plan that kills at
  // the same step repeatedly would let no run finish.
  [[nodiscard]] std::vector<ProcessFault> take_until(std::uint64_t step);

 private:
  ChaosOptions options_;
  std::vector<std::size_t> tasks_;
  std::optional<std::uint64_t> taken_;  // up to this step
};

}  // namespace disttf::roles
