#include "main/environment.h"

#include <unistd.h>

#include <array>
#include <vector>

#include "net/tls/secrets.h"
#include "run/gpu_list.h"

namespace disttf {
namespace {

constexpr std::array kProxyVariables = {"http_proxy",  "https_proxy", "all_proxy", "no_proxy",
                                        "HTTPS_PROXY", "ALL_PROXY",   "NO_PROXY"};

constexpr std::array kTerminalVariables = {"COLUMNS", "LINES",    "TERM", "NO_COLOR",
                                           "LC_ALL",  "LC_CTYPE", "LANG"};

}  // namespace

std::span<const char* const> environment_names() {
  // The program's own code reads no variable outside this list, so a test can replace the whole
  // environment.
  static const std::vector<const char*> kNames = [] {
    const auto of_resolvers = net::resolver_variables();
    std::vector<const char*> names(of_resolvers.begin(), of_resolvers.end());
    names.insert(names.end(), kProxyVariables.begin(), kProxyVariables.end());
    names.insert(names.end(), roles::kStoreVariables.begin(), roles::kStoreVariables.end());
    names.push_back(net::kSecretVariable);
    for (const char* of_gpus : {roles::kCudaVisible, roles::kRocrVisible, roles::kHipVisible,
                                kDeviceOrder, kCublasWorkspace}) {
      names.push_back(of_gpus);
    }
    names.push_back("PATH");             // launch looks up a COMMAND there
    names.push_back("XDG_RUNTIME_DIR");  // launch puts its control socket below it
    names.insert(names.end(), kTerminalVariables.begin(), kTerminalVariables.end());
    return names;
  }();
  return kNames;
}

std::string value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

std::string search_path(const Environment& environment) {
  const std::string path = value_of(environment, "PATH");
  return path.empty() ? "/usr/local/bin:/usr/bin:/bin" : path;
}

net::ProxySettings proxy_settings(const Environment& environment) {
  const auto either_case = [&](std::string_view lower, std::string_view upper) {
    const std::string value = value_of(environment, lower);
    return value.empty() ? value_of(environment, upper) : value;
  };
  // HTTP_PROXY in capitals is not read: a CGI program's client can set it.
  return {.http_proxy = value_of(environment, "http_proxy"),
          .https_proxy = either_case("https_proxy", "HTTPS_PROXY"),
          .all_proxy = either_case("all_proxy", "ALL_PROXY"),
          .no_proxy = either_case("no_proxy", "NO_PROXY")};
}

roles::StoreEnvironment store_environment(const Environment& environment) {
  roles::StoreEnvironment stores{.variables = {}, .proxy = proxy_settings(environment)};
  for (const char* name : roles::kStoreVariables) {
    if (const auto found = environment.find(name); found != environment.end()) {
      stores.variables.insert(*found);
    }
  }
  return stores;
}

roles::TerminalVariables terminal_variables(const Environment& environment) {
  // A variable that is not set counts as empty, as POSIX says for the locale.
  roles::TerminalVariables variables{.columns = value_of(environment, "COLUMNS"),
                                     .lines = value_of(environment, "LINES"),
                                     .term = value_of(environment, "TERM"),
                                     .no_color = value_of(environment, "NO_COLOR"),
                                     .locale = value_of(environment, "LC_ALL")};
  // The order of POSIX: the first variable that is not empty counts.
  for (const char* const name : {"LC_CTYPE", "LANG"}) {
    variables.locale = variables.locale.empty() ? value_of(environment, name) : variables.locale;
  }
  return variables;
}

std::string control_directory(const Environment& environment) {
  const auto found = environment.find("XDG_RUNTIME_DIR");
  // All users share /tmp, hence the number of the user. ControlSocket refuses a directory of
  // another user.
  return found != environment.end() && found->second.starts_with("/")
             ? found->second + "/disttf"
             : "/tmp/disttf-" + std::to_string(geteuid());
}

}  // namespace disttf
