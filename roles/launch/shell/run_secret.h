// The secret that a launch makes for its own run, so that nobody but its tasks is one of them, and
// how they are told: in their environment, which other users cannot read, where command lines are
// everybody's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace disttf::roles {

enum class SecretOfRun : std::uint8_t {
  kGiven,  // its tasks find one as the launcher's own flags and environment say, or none
  kMade,   // the launcher makes one
  kNone,   // --insecure: none, whatever the environment says
};

// 32 bytes from the system's generator, in base64. Throws std::system_error.
[[nodiscard]] std::string make_run_secret();

// "NAME=value": what the environment of each task has besides. `made`: of kMade, which it wants.
[[nodiscard]] std::vector<std::string> secret_variables(SecretOfRun kind, const std::string& made);

}  // namespace disttf::roles
