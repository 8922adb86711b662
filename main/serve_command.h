// disttf serve DIR: a trained model that answers over HTTP. disttf healthcheck URL: whether it
// does.
#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "main/flags.h"
#include "net/http/url.h"
#include "roles/serve/shell/serve_command.h"

namespace disttf {

void add_serve_flags(CLI::App& app, Flags& flags);

// Takes the directory, the word before the first flag. Throws std::invalid_argument where it is
// missing, or there are more.
[[nodiscard]] std::string take_serve_word(std::vector<std::string>& arguments);

// Throws std::invalid_argument where the name cannot be a part of an address.
[[nodiscard]] roles::ServeOptions serve_options(const std::string& directory, const Flags& flags);

void add_healthcheck_flags(CLI::App& app, Flags& flags);

// Takes the URL, likewise. Throws also where it is none.
[[nodiscard]] net::Url take_healthcheck_word(std::vector<std::string>& arguments);

}  // namespace disttf
