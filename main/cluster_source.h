// Who this task is and with whom: from the flags, else from TF_CONFIG.
//
// Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "main/flags.h"
#include "net/cluster.h"

namespace disttf {

// nullopt: no cluster is described anywhere, train on this machine (command train only).
// `tf_config`: the variable's value, empty when it is not set. Throws std::invalid_argument: what
// is missing, malformed or contradicts, with field and value.
[[nodiscard]] std::optional<net::ClusterAndTask> find_cluster(Command command, const Flags& flags,
                                                              std::string_view tf_config);

}  // namespace disttf
