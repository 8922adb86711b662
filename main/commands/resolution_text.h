// A task's identity and cluster, as the resolvers have found them, in words.
//
// Pure functions.
#pragma once

#include <string>

#include "net/resolvers/resolvers.h"

namespace disttf {

// A line for the log: the resolver, the task, whether it is the chief, the hash of the cluster.
[[nodiscard]] std::string summary(const net::Resolution& resolution);

// The output of `disttf resolve`: the summary; with `has_facts` a table of the facts and their
// sources; in JSON one object with all of them.
[[nodiscard]] std::string resolve_text(const net::Resolution& resolution, bool has_facts,
                                       bool as_json);

}  // namespace disttf
