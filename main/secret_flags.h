// What the tasks of a run share so that nobody else is one of them, as users say it.
#pragma once

#include <CLI/App.hpp>
#include <memory>

#include "main/common_options.h"
#include "main/flags.h"
#include "net/transport/secrets.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf {

// --secret_file and --insecure
void add_secret_flags(CLI::App& app, Flags& flags);

// Of --secret_file, or else of the variable; null: the run has none, or is to have none. Throws
// std::invalid_argument, also where there is none, `cluster` names other machines than this one,
// and nobody has said that this is meant.
[[nodiscard]] std::shared_ptr<net::Secrets> secrets_from(const Flags& flags,
                                                         const Environment& environment,
                                                         const net::Cluster& cluster);

// Of tasks that render writes down, each of them for a machine of its own: throws
// std::invalid_argument where they would have neither a secret nor --insecure; `advice`: what to
// do.
void check_rendered_secret(const Flags& flags, const char* advice);

// Where the tasks of a launch have theirs from. Throws std::invalid_argument.
[[nodiscard]] roles::SecretOfRun secret_of_launch(const Flags& flags,
                                                  const Environment& environment);

}  // namespace disttf
