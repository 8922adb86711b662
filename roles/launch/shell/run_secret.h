// The secret that a launch makes for its run, so that only its tasks can join. They get it in their
// environment, which other users cannot read; command lines are public.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace disttf::roles {

enum class SecretOfRun : std::uint8_t {
  kGiven,  // tasks find one by the launcher's flags and environment, or there is none
  kMade,   // the launcher makes one
  kNone,   // --insecure: none, even if the environment has one
};

// 32 bytes from the system's generator, in base64. Throws std::system_error.
[[nodiscard]] std::string make_run_secret();

// "NAME=value": additional variables of each task. `made`: the secret, for kMade.
[[nodiscard]] std::vector<std::string> secret_variables(SecretOfRun kind, const std::string& made);

}  // namespace disttf::roles
