// What the tasks of a run share so that nobody else is one of them, as users say it.
#pragma once

#include <CLI/App.hpp>
#include <memory>

#include "main/common_options.h"
#include "main/flags.h"
#include "net/transport/secrets.h"

namespace disttf {

// The secret itself. There is no flag for that: every user of a machine sees its command lines.
inline constexpr const char* kSecretVariable = "DISTTF_SECRET";

void add_secret_flag(CLI::App& app, Flags& flags);

// Of --secret_file, or else of the variable; null: the run has none. Throws std::invalid_argument.
[[nodiscard]] std::shared_ptr<net::Secrets> secrets_from(const Flags& flags,
                                                         const Environment& environment);

}  // namespace disttf
