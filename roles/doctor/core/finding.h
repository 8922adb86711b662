// What `disttf doctor` says of a machine: a finding for each thing that a task depends on.
//
// Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "roles/run/outcome.h"

namespace disttf::roles {

struct Finding {
  enum class Grade : std::uint8_t {
    kGood,     // as a task wants it
    kLacking,  // a task runs without, and slower or with less between it and others
    kBad,      // a task would not run
  };
  std::string subject;  // one word, the same in every version: "seccomp"
  Grade grade = Grade::kGood;
  std::string text;  // without a full stop
  // What a task would end with for it, where it is bad.
  ExitCode exit_code = kDone;
};

[[nodiscard]] std::string_view grade_name(Finding::Grade grade) noexcept;

// A line each; the texts begin in one column.
[[nodiscard]] std::string to_text(std::span<const Finding> findings);
// {"well":true,"findings":[{"subject":"kernel","grade":"good","text":"..."}]}
[[nodiscard]] std::string to_json(std::span<const Finding> findings);
// Of the first that is bad; kDone: none is.
[[nodiscard]] ExitCode exit_code_of(std::span<const Finding> findings) noexcept;

}  // namespace disttf::roles
