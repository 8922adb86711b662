// What several commands make of flags and the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/download/dataset_source.h"
#include "roles/process/log.h"

namespace disttf {

// The variables that disttf reads; main fills it, nobody else calls getenv.
using net::Environment;

// Empty: it is not set.
[[nodiscard]] std::string value_of(const Environment& environment, std::string_view name);

// The proxy variables.
[[nodiscard]] net::ProxySettings proxy_settings(const Environment& environment);

// Which data, from where, and through which proxy. Throws std::invalid_argument where --data and
// --dataset contradict each other.
[[nodiscard]] roles::DataOptions data_options(const Flags& flags, const Environment& environment);

[[nodiscard]] roles::LogOptions log_options(const Flags& flags);

// Where the chief writes for TensorBoard: beside the checkpoints, where these are in a directory.
// Empty: nowhere.
[[nodiscard]] std::string summary_directory(const Flags& flags);

}  // namespace disttf
