// The secret of a run (docs/security.md) as engines keep it. What is rendered holds the name under
// which the engine knows it, never the secret. Who trains gets it, who serves files does not.
//
// Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "main/render/deployment.h"

namespace disttf::render {

// What the secret is called within what an engine keeps under the name: a key of Kubernetes'
// Secret, an item of Nomad's variable, and in the environment of a task.
inline constexpr const char* kSecretVariable = "DISTTF_SECRET";
// Read by its owner alone. JSON and YAML have no octal numbers in common.
inline constexpr int kSecretMode = 0400;
// Writes 32 random bytes as text.
inline constexpr const char* kMakeSecret = "head -c 32 /dev/urandom | base64";

// The flag by which a task reads it from a file.
[[nodiscard]] std::string secret_flag(const std::string& path);

// Throws when the name has other characters than letters, digits and `besides`, or begins with a
// hyphen. `allowed`: a sentence's end that says so.
void check_secret(const Deployment& deployment, std::string_view besides, const char* allowed);

// Throws when there is one. `why`: "which knows no secrets".
void refuse_secret(const Deployment& deployment, std::string_view target, std::string_view why);

// Throws when a flag of the tasks is given. `whose`: "kelda, whose containers mount nothing".
void refuse_flag(const Deployment& deployment, std::string_view name, std::string_view whose);
// Of a target all of whose tasks see the same files at a path, and have one command line: each
// needs a certificate of its own.
void refuse_certificates(const Deployment& deployment, std::string_view target);

}  // namespace disttf::render
