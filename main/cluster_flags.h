// The flags that say which task this is and of which cluster.
#pragma once

#include <CLI/App.hpp>

#include "main/flags.h"

namespace disttf {

// Which task this is.
void add_identity_flags(CLI::App& app, Command command, Flags& flags);
// The tasks' addresses.
void add_list_flags(CLI::App& app, Flags& flags);
// The lists are of servers, which wait for orders.
void add_existing_servers(CLI::App& app, Flags& flags);
// What an environment does not tell: counts, the pattern of the addresses.
void add_find_flags(CLI::App& app, Flags& flags);
// More workers may come than the lists have.
void add_max_workers(CLI::App& app, Flags& flags, const char* group);
// How `disttf resolve` shows what it found.
void add_resolve_flags(CLI::App& app, Flags& flags);

}  // namespace disttf
