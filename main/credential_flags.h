// By what the tasks of a run know each other, so that nobody else is one of them, as users say it:
// a secret, certificates, or the word for neither.
#pragma once

#include <CLI/App.hpp>
#include <memory>

#include "main/common_options.h"
#include "main/flags.h"
#include "net/transport/credentials.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf {

// --secret_file and --insecure; --task_cert, --task_key and --task_ca, but for launch, which has
// several tasks.
void add_credential_flags(CLI::App& app, Command command, Flags& flags);

// Of --task_cert, or --secret_file, or else of the variable; null: the run has none, or is to have
// none. Throws std::invalid_argument, also where there is none, `cluster` names other machines than
// this one, and nobody has said that this is meant. `self` is who speaks.
[[nodiscard]] std::shared_ptr<net::Credentials> credentials_from(const Flags& flags,
                                                                 const Environment& environment,
                                                                 const net::Cluster& cluster,
                                                                 const net::TaskId& self);

// Of tasks that render writes down, each of them for a machine of its own: throws
// std::invalid_argument where they would have neither a secret nor certificates nor --insecure;
// `advice`: what to do.
void check_rendered_credentials(const Flags& flags, const char* advice);

// Where the tasks of a launch have their secret from. Throws std::invalid_argument.
[[nodiscard]] roles::SecretOfRun secret_of_launch(const Flags& flags,
                                                  const Environment& environment);

}  // namespace disttf
