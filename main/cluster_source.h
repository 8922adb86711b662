// A task's identity and cluster, from the command and its flags, in the form of net/resolvers/.
//
// Pure functions.
#pragma once

#include <string>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"

namespace disttf {

// Throws std::invalid_argument: which field is missing, malformed or contradictory, and its value.
[[nodiscard]] net::ClusterFlags cluster_flags(Command command, const Flags& flags);

// A line for the log: the resolver, the task, whether it is the chief, the hash of the cluster.
[[nodiscard]] std::string summary(const net::Resolution& resolution);

// The output of `disttf resolve`: the summary; with --print a table of the facts and their sources;
// with --json the same as one object.
[[nodiscard]] std::string resolve_text(const net::Resolution& resolution, const Flags& flags);

// The cluster, for a process that is no task of it. Throws std::invalid_argument, also if no
// cluster is described, or one without workers.
[[nodiscard]] net::Cluster find_lists(const Flags& flags, const net::Environment& environment);

}  // namespace disttf
