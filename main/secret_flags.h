// What the tasks of a run share so that nobody else is one of them, as users say it.
#pragma once

#include <CLI/App.hpp>
#include <memory>

#include "main/common_options.h"
#include "main/flags.h"
#include "net/transport/secrets.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf {

void add_secret_flag(CLI::App& app, Flags& flags);

// Of --secret_file, or else of the variable; null: the run has none. Throws std::invalid_argument.
[[nodiscard]] std::shared_ptr<net::Secrets> secrets_from(const Flags& flags,
                                                         const Environment& environment);

// launch --insecure
void add_insecure_flag(CLI::App& app, Flags& flags);
// Where the tasks of a launch have theirs from. Throws std::invalid_argument.
[[nodiscard]] roles::SecretOfRun secret_of_launch(const Flags& flags,
                                                  const Environment& environment);

}  // namespace disttf
