// What roles_test does when it starts itself as a child process.
#pragma once

namespace disttf::roles {

inline constexpr const char* kProbeArgument = "probe";  // its first argument
// Its second: print one word, then wait a minute.
inline constexpr const char* kProbeWaits = "wait";
// Its second: be the task of a user's program (own_program_test.cc).
inline constexpr const char* kProbeTask = "task";
inline constexpr const char* kProbeProgress = "1 2 3 4\n";  // what it writes as progress
inline constexpr int kProbeExitCode = 42;

}  // namespace disttf::roles
