// The environment of stores, which main reads: endpoints, credentials, proxies. Never logged.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "net/http/http_proxy.h"

namespace disttf::roles {

struct StoreEnvironment {
  // The variables of kStoreVariables that are set.
  std::map<std::string, std::string, std::less<>> variables;
  net::ProxySettings proxy;

  // Empty if the variable is not set.
  [[nodiscard]] std::string value_of(std::string_view name) const {
    const auto found = variables.find(name);
    return found == variables.end() ? "" : found->second;
  }
};

// The variables that stores use.
inline constexpr std::array kStoreVariables = {"AWS_ACCESS_KEY_ID",
                                               "AWS_CA_BUNDLE",
                                               "AWS_CONFIG_FILE",
                                               "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                                               "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                               "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                               "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                               "AWS_DEFAULT_REGION",
                                               "AWS_EC2_METADATA_DISABLED",
                                               "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                               "AWS_ENDPOINT_URL",
                                               "AWS_ENDPOINT_URL_S3",
                                               "AWS_ENDPOINT_URL_STS",
                                               "AWS_PROFILE",
                                               "AWS_REGION",
                                               "AWS_ROLE_ARN",
                                               "AWS_ROLE_SESSION_NAME",
                                               "AWS_SECRET_ACCESS_KEY",
                                               "AWS_SESSION_TOKEN",
                                               "AWS_SHARED_CREDENTIALS_FILE",
                                               "AWS_WEB_IDENTITY_TOKEN_FILE",
                                               "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE",
                                               "CLOUDSDK_CONFIG",
                                               "GCE_METADATA_HOST",
                                               "GOOGLE_APPLICATION_CREDENTIALS",
                                               "HADOOP_CONF_DIR",
                                               "HADOOP_PROXY_USER",
                                               "HADOOP_TOKEN",
                                               "HADOOP_TOKEN_FILE_LOCATION",
                                               "HADOOP_USER_NAME",
                                               "HOME",
                                               "LOGNAME",
                                               "NO_GCE_CHECK",
                                               "STORAGE_EMULATOR_HOST",
                                               "USER"};

// Those of them that name a file of credentials. Several of these files are read again when they
// change.
inline constexpr std::array kStoreFileVariables = {"AWS_CA_BUNDLE",
                                                   "AWS_CONFIG_FILE",
                                                   "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                                                   "AWS_SHARED_CREDENTIALS_FILE",
                                                   "AWS_WEB_IDENTITY_TOKEN_FILE",
                                                   "GOOGLE_APPLICATION_CREDENTIALS",
                                                   "HADOOP_TOKEN_FILE_LOCATION"};

}  // namespace disttf::roles
