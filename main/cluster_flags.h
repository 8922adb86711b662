// The flags that set a task's identity and its cluster.
#pragma once

#include <CLI/App.hpp>

#include "main/flags.h"

namespace disttf {

// --job_name and --task_index.
void add_identity_flags(CLI::App& app, Command command, Flags& flags);
// The lists of the tasks' addresses.
void add_list_flags(CLI::App& app, Flags& flags);
// --existing_servers: the listed addresses are those of running `disttf server` processes.
void add_existing_servers(CLI::App& app, Flags& flags);
// The resolver, and what it may leave open: counts of tasks, the pattern of addresses.
void add_find_flags(CLI::App& app, Flags& flags);
// --max_workers: more workers may join than the lists name.
void add_max_workers(CLI::App& app, Flags& flags, const char* group);
// The output formats of `disttf resolve`.
void add_resolve_flags(CLI::App& app, Flags& flags);

}  // namespace disttf
