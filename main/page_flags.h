// The flags of a run's page, for every command that serves one.
#pragma once

#include <CLI/App.hpp>
#include <optional>

#include "main/flags.h"
#include "roles/monitor/shell/page_server.h"

namespace disttf {

void add_page_flags(CLI::App& app, Flags& flags);

// nullopt: no page is asked for. Throws std::invalid_argument if another of the flags is given
// without --page.
[[nodiscard]] std::optional<roles::PageOptions> page_options(const Flags& flags);

}  // namespace disttf
