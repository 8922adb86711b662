// Who this task is and with whom: the command and its flags, as net/resolvers/ takes them.
//
// Pure functions.
#pragma once

#include <string>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"

namespace disttf {

// Throws std::invalid_argument: what is missing, malformed or contradicts, with field and value.
[[nodiscard]] net::ClusterFlags cluster_flags(Command command, const Flags& flags);

// For the log: which resolver, which task, chief or not, cluster hash.
[[nodiscard]] std::string summary(const net::Resolution& resolution);

// What `disttf resolve` prints: the summary; with --print a table of what was found and where; with
// --json the same as one object.
[[nodiscard]] std::string resolve_text(const net::Resolution& resolution, const Flags& flags);

// With whom, for a process that is no task of the cluster. Throws std::invalid_argument, also when
// no cluster is described, or one without workers.
[[nodiscard]] net::Cluster find_lists(const Flags& flags, const net::Environment& environment);

}  // namespace disttf
