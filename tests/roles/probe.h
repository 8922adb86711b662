// What roles_test does when it is started as a child of itself.
#pragma once

namespace disttf::roles {

inline constexpr const char* kProbeArgument = "probe";  // its first argument
inline constexpr const char* kProbeWaits = "wait";  // its second: say one word, then wait a minute
inline constexpr const char* kProbeProgress = "1 2 3 4\n";  // what it writes as progress
inline constexpr int kProbeExitCode = 42;

}  // namespace disttf::roles
