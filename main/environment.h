// The environment variables that disttf reads, as main() found them, and what they say.
//
// Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "net/http/http_proxy.h"
#include "net/resolvers/resolvers.h"
#include "run/monitor/shell/plot_command.h"
#include "storage/store/shell/store_environment.h"

namespace disttf {

using net::Environment;

// Further variables that decide about GPUs; run/gpu_list.h has the lists.
inline constexpr const char* kDeviceOrder = "CUDA_DEVICE_ORDER";
inline constexpr const char* kCublasWorkspace = "CUBLAS_WORKSPACE_CONFIG";

// The variables that Environment holds.
[[nodiscard]] std::span<const char* const> environment_names();

// The variable's value; empty if it is not set.
[[nodiscard]] std::string value_of(const Environment& environment, std::string_view name);

// PATH; the search path of shells where that is not set.
[[nodiscard]] std::string search_path(const Environment& environment);

// The proxies that the environment names.
[[nodiscard]] net::ProxySettings proxy_settings(const Environment& environment);

// The variables and proxies that stores use.
[[nodiscard]] roles::StoreEnvironment store_environment(const Environment& environment);

// The variables that describe the terminal.
[[nodiscard]] roles::TerminalVariables terminal_variables(const Environment& environment);

// The directory of the control sockets of this user's launches.
[[nodiscard]] std::string control_directory(const Environment& environment);

}  // namespace disttf
