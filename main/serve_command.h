// disttf serve DIR: serves a trained model over HTTP; without DIR, the parameters of a running
// cluster. disttf healthcheck URL: checks a service.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "main/commands/action.h"
#include "main/flags.h"
#include "net/http/url.h"
#include "net/resolvers/resolvers.h"
#include "roles/serve/shell/serve_command.h"

namespace disttf {

void add_serve_flags(CLI::App& app, Flags& flags);

// Takes the directory, the word before the first flag; empty: there is none. Throws
// std::invalid_argument if another word follows.
[[nodiscard]] std::string take_serve_word(std::vector<std::string>& arguments);

// `app` has parsed the flags. Throws std::invalid_argument unless exactly one of directory and
// cluster is given, and if the name cannot be part of a URL.
[[nodiscard]] roles::ServeOptions serve_options(const std::string& directory, const CLI::App& app,
                                                const Flags& flags,
                                                const net::Environment& environment,
                                                std::vector<std::string>& warnings);

[[nodiscard]] std::unique_ptr<Action> run_service(roles::ServeOptions options);

void add_healthcheck_flags(CLI::App& app, Flags& flags);

// Takes the URL likewise. Throws also if it is malformed.
[[nodiscard]] std::optional<net::Url> take_healthcheck_word(std::vector<std::string>& arguments);

}  // namespace disttf
