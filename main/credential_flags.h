// The credentials of a run's tasks: a secret, certificates, or an explicit choice of neither.
#pragma once

#include <CLI/App.hpp>
#include <memory>

#include "main/common_options.h"
#include "main/flags.h"
#include "net/transport/credentials.h"
#include "net/wire/cluster.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf {

// Adds --secret_file and --insecure; --task_cert, --task_key and --task_ca except for launch, which
// has several tasks.
void add_credential_flags(CLI::App& app, Command command, Flags& flags);

// The credentials of `self`, from --task_cert, else --secret_file, else the variable; null: none.
// Throws std::invalid_argument, also if there are none, `cluster` names another machine, and
// --insecure is not given.
[[nodiscard]] std::shared_ptr<net::Credentials> credentials_from(const Flags& flags,
                                                                 const Environment& environment,
                                                                 const net::Cluster& cluster,
                                                                 const net::TaskId& self);

// Throws std::invalid_argument if rendered tasks, each for a machine of its own, would have neither
// a secret nor certificates nor --insecure. `advice` ends the message.
void check_rendered_credentials(const Flags& flags, const char* advice);

// How the tasks of a launch get their secret. Throws std::invalid_argument.
[[nodiscard]] roles::SecretOfRun secret_of_launch(const Flags& flags,
                                                  const Environment& environment);

}  // namespace disttf
