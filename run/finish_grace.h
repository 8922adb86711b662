// How long the tasks of a finished run are waited for.
#pragma once

#include <chrono>

namespace disttf::roles {

// Tasks leave within 2 s. Workers evaluate the result as the chief has done, in `evaluation`, after
// the chief has left. A multiple of both, for a busy machine.
[[nodiscard]] constexpr std::chrono::seconds finish_grace(std::chrono::nanoseconds evaluation) {
  constexpr std::chrono::seconds kToLeave{10};
  constexpr int kEvaluations = 3;
  return kToLeave + std::chrono::ceil<std::chrono::seconds>(kEvaluations * evaluation);
}

}  // namespace disttf::roles
