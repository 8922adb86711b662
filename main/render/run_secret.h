// The secret of a run (docs/security.md) in engines. A rendered file contains the engine's name of
// the secret, never the secret itself. Training tasks get it; serving tasks do not.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "main/render/deployment.h"

namespace disttf::render {

// The name of the value within the engine's object (a key of Kubernetes' Secret, an item of Nomad's
// variable), and of the environment variable of a task.
inline constexpr const char* kSecretVariable = "DISTTF_SECRET";
// Readable by the owner only. JSON and YAML have no common notation of octal numbers.
inline constexpr int kSecretMode = 0400;
// Writes 32 random bytes as text.
inline constexpr const char* kMakeSecret = "head -c 32 /dev/urandom | base64";

// The flag that makes a task read the secret from a file.
[[nodiscard]] std::string secret_flag(const std::string& path);

// Throws if the name has other characters than letters, digits and `besides`, or begins with a
// hyphen. `allowed` is the end of the message.
void check_secret(const Deployment& deployment, std::string_view besides, const char* allowed);

// Throws if there is a secret. `why`: "which has no secrets".
void refuse_secret(const Deployment& deployment, std::string_view target, std::string_view why);

// Throws if the tasks' flags include `name`. `whose`: "kelda, whose containers mount nothing".
void refuse_flag(const Deployment& deployment, std::string_view name, std::string_view whose);
// For a target whose tasks share paths and one command line: each task needs its own certificate.
void refuse_certificates(const Deployment& deployment, std::string_view target);

}  // namespace disttf::render
