// `disttf doctor`: checks what a task needs on this machine, as this user, in this container. Where
// it can, it tries rather than looks up.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "run/outcome.h"
#include "run/process/gpus.h"

namespace disttf::roles {

struct DoctorOptions {
  bool as_json = false;
  std::optional<std::uint16_t> port;  // tried; none: no port is checked
  EnvironmentMap environment = {};    // the variables that list GPUs
};

// Prints the findings. Returns the exit code of the first bad one, else kDone. REQUIRES: the
// process has entered its sandbox as a task does (run/process/confinement.h).
[[nodiscard]] int run_doctor(const DoctorOptions& options);

// A finding of `disttf doctor` about one thing that a task depends on.
//
// Pure functions.
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
