// Which faults `launch --chaos SEED,RATE` makes, and at which steps: a function of the seed.
//
// A fault belongs to a global step, not to a time, so a seed that made a run fail gives the same
// list of (step, task, fault) again, on a faster machine too. For every step a number is drawn that
// says whether it has a fault, one at most; no fault depends on an earlier one.
//
// Knows no clock and no process. Not thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "roles/run/chaos_options.h"

namespace disttf::roles {

struct ProcessFault {
  enum class Kind : std::uint8_t {
    kKill,    // SIGKILL
    kFreeze,  // SIGSTOP, and SIGCONT after `frozen_for`
  };
  std::uint64_t step = 0;  // due once this many updates have been made
  std::size_t task = 0;
  Kind kind = Kind::kKill;
  // 50 ms to 2 s: from less than a heartbeat to two of them missed. The only time in the plan:
  // while a task is frozen there may be no steps to count.
  std::chrono::milliseconds frozen_for{0};

  friend bool operator==(const ProcessFault&, const ProcessFault&) = default;
};

class FaultPlan {
 public:
  // `tasks`: the numbers of those that may be hit; all are equally likely. REQUIRES: not empty.
  FaultPlan(const ChaosOptions& options, std::vector<std::size_t> tasks);

  [[nodiscard]] std::optional<ProcessFault> at(std::uint64_t step) const;

  // The run has reached `step`: the faults that are due, in order. The first call says where the
  // run begins. Each fault is due once, even if the run goes back behind it: a plan that kills at
  // the same step again and again would let no run end.
  [[nodiscard]] std::vector<ProcessFault> take_until(std::uint64_t step);

 private:
  ChaosOptions options_;
  std::vector<std::size_t> tasks_;
  std::optional<std::uint64_t> taken_;  // up to this step
};

}  // namespace disttf::roles
