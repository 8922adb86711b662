// Options that several commands derive from flags and the environment.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "main/flags.h"
#include "net/resolvers/resolvers.h"
#include "roles/download/dataset_source.h"
#include "roles/process/log.h"

namespace disttf {

// The environment variables that disttf reads, as main() found them.
using net::Environment;

// The variable's value; empty if it is not set.
[[nodiscard]] std::string value_of(const Environment& environment, std::string_view name);

// The proxies that the environment names.
[[nodiscard]] net::ProxySettings proxy_settings(const Environment& environment);

// Which data set, from which source, through which proxy. Throws std::invalid_argument if both
// --data and --dataset are given.
[[nodiscard]] roles::DataOptions data_options(const Flags& flags, const Environment& environment);

[[nodiscard]] roles::LogOptions log_options(const Flags& flags);

// Where the chief writes for TensorBoard: --log_dir, else --train_dir if that is a directory.
// Empty: nowhere.
[[nodiscard]] std::string summary_directory(const Flags& flags);

}  // namespace disttf
