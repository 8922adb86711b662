// disttf serve DIR: a trained model that answers over HTTP; without DIR, what the ps of a run hold.
// disttf healthcheck URL: whether it does.
#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/http/url.h"
#include "net/resolvers/resolvers.h"
#include "roles/serve/shell/serve_command.h"

namespace disttf {

void add_serve_flags(CLI::App& app, Flags& flags);

// Takes the directory, the word before the first flag; empty: there is none. Throws
// std::invalid_argument where there are more.
[[nodiscard]] std::string take_serve_word(std::vector<std::string>& arguments);

// `app`: with these flags read. Throws std::invalid_argument where there is neither a directory nor
// a cluster, or both; where the name cannot be a part of an address.
[[nodiscard]] roles::ServeOptions serve_options(const std::string& directory, const CLI::App& app,
                                                const Flags& flags,
                                                const net::Environment& environment,
                                                std::vector<std::string>& warnings);

void add_healthcheck_flags(CLI::App& app, Flags& flags);

// Takes the URL, likewise. Throws also where it is none.
[[nodiscard]] std::optional<net::Url> take_healthcheck_word(std::vector<std::string>& arguments);

}  // namespace disttf
