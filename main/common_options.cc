#include "main/common_options.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <stdexcept>

#include "main/own_data_flags.h"
#include "net/wire/text.h"
#include "roles/store/core/store_url.h"
#include "roles/store/shell/storage.h"

namespace disttf {

std::string value_of(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
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

roles::DataOptions data_options(const Flags& flags, const Environment& environment) {
  roles::DataOptions data;
  data.own = own_data_options(flags.own_data);
  data.dataset = roles::find_dataset(flags.dataset);  // auto: none
  if (data.own && data.dataset != nullptr) {
    throw std::invalid_argument("--dataset: " + net::quoted(flags.dataset) +
                                " is not allowed together with --data");
  }
  roles::check_place("--data_dir", flags.data_dir);
  if (roles::is_store_url(std::string_view(flags.data_dir))) {
    data.store = flags.data_dir;  // its files are copied to the default directory
  } else {
    data.directory = flags.data_dir;
  }
  roles::check_place("--data", flags.own_data.path);
  data.mirrors = flags.data_url;
  data.ca_file = flags.ca_file;
  data.timeout = std::chrono::seconds(flags.download_timeout_s);
  data.proxy = proxy_settings(environment);
  return data;
}

roles::LogOptions log_options(const Flags& flags) {
  using roles::LogLevel;
  static const std::map<std::string, LogLevel> kLevels = {{"debug", LogLevel::kDebug},
                                                          {"info", LogLevel::kInfo},
                                                          {"warning", LogLevel::kWarning},
                                                          {"error", LogLevel::kError},
                                                          {"off", LogLevel::kOff}};
  return {.level = kLevels.at(flags.log_level),
          .format = flags.log_format == "json" ? roles::LogFormat::kJson : roles::LogFormat::kText,
          .task = {},
          .name_task = flags.listen_fd < 0};
}

std::string summary_directory(const Flags& flags) {
  if (!flags.log_dir.empty()) {
    return flags.log_dir;
  }
  return roles::is_store_url(std::string_view(flags.train_dir)) ? "" : flags.train_dir;
}

}  // namespace disttf
