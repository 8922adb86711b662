// A finding of `disttf doctor` about one thing that a task depends on.
//
// Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "run/outcome.h"

namespace disttf::roles {

struct Finding {
  enum class Grade : std::uint8_t {
    kGood,     // all that a task needs
    kLacking,  // a task runs, but slower or less isolated
    kBad,      // a task would not run
  };
  std::string subject;  // one word that never changes: "seccomp"
  Grade grade = Grade::kGood;
  std::string text;  // without a full stop
  // The exit code of a task that fails for this reason; set for kBad.
  ExitCode exit_code = kDone;
};

[[nodiscard]] std::string_view grade_name(Finding::Grade grade) noexcept;

// One line for each finding; the texts are aligned in a column.
[[nodiscard]] std::string to_text(std::span<const Finding> findings);
// {"well":true,"findings":[{"subject":"kernel","grade":"good","text":"..."}]}
[[nodiscard]] std::string to_json(std::span<const Finding> findings);
// Returns the exit code of the first bad finding; kDone without one.
[[nodiscard]] ExitCode exit_code_of(std::span<const Finding> findings) noexcept;

}  // namespace disttf::roles
