// The table of the system calls that each kind of process makes. The filter of calls
// (confinement.h) refuses the rest.
//
// tests/process/confinement_test.cc runs processes of each kind and compares the table with every
// call that they make. A call that is missing here fails the test, and so does a call without a
// reason here that none of the runs makes.
//
// Constant data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace disttf::roles {

// The kind of a process, by how it uses the system.
enum class ProcessKind : std::uint8_t {
  kPs,
  kTrainer,  // a worker, a chief, and the driver of servers
  kEvaluator,
  kServe,
  kCommand,   // one that a user waits for: predict, export, show, status, doctor
  kLauncher,  // starts tasks, which run this same file: launch, server
  kPrograms,  // starts other programs: launch -- COMMAND. It has no list
};
inline constexpr std::size_t kListedKinds = 6;  // those before kPrograms

[[nodiscard]] std::string_view name_of(ProcessKind kind) noexcept;

struct SystemCall {
  int number = 0;
  std::string_view name;
  std::uint8_t kinds = 0;  // a bit for each kind, 1 << kind
  // The use of a call that not every process of these kinds makes. Empty: each does.
  std::string_view reason = {};

  [[nodiscard]] constexpr bool is_of(ProcessKind kind) const noexcept {
    return (kinds >> static_cast<unsigned>(kind) & 1U) != 0;
  }
};

// The calls of the processor that this is built for; the most frequent ones first.
[[nodiscard]] std::span<const SystemCall> system_calls() noexcept;

}  // namespace disttf::roles
