#include "storage/store/shell/aws_credentials.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "net/http/http_session.h"
#include "net/http/http_status.h"
#include "net/http/url.h"
#include "net/tcp/sockets.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "storage/store/core/s3_answers.h"
#include "storage/store/core/store_error.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

// The largest answer with credentials.
constexpr std::size_t kMaxCredentialBytes = std::size_t{1} << 20U;
// Credentials that expire this soon could expire during the request.
constexpr auto kRefreshBefore = 5min;
// A metadata server is on this host, or does not exist.
constexpr net::HttpLimits kMetadataLimits{.connect_timeout = 1s, .stall_timeout = 5s};
constexpr net::HttpLimits kTokenServiceLimits{.connect_timeout = 5s, .stall_timeout = 15s};

std::string profile_file(const StoreEnvironment& environment, const char* variable,
                         const char* name) {
  if (std::string path = environment.value_of(variable); !path.empty()) return path;
  const std::string home = environment.value_of("HOME");
  return home.empty() ? "" : home + "/.aws/" + name;
}

// The URL of a container's server. Over http only this host and the fixed addresses of ECS and EKS
// are allowed, as in Amazon's tools: the token of the request and the credentials of the answer
// would cross a network in clear text. Throws std::invalid_argument.
net::Url container_url(const StoreEnvironment& environment) {
  constexpr std::string_view kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
  constexpr std::string_view kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
  // The relative URI wins, as in Amazon's tools.
  if (const std::string path = environment.value_of(kRelative); !path.empty()) {
    // Another text could continue the host's name.
    if (!path.starts_with('/')) {
      throw std::invalid_argument(std::string(kRelative) + ": " + net::quoted(path) +
                                  " must begin with /");
    }
    return net::parse_url(kRelative, "http://169.254.170.2" + path);
  }
  net::Url url = net::parse_url(kFull, environment.value_of(kFull));
  constexpr std::array<std::string_view, 3> kServers = {"169.254.170.2", "169.254.170.23",
                                                        "fd00:ec2::23"};
  if (url.scheme == net::Scheme::kHttp && !net::is_loopback_host(url.host) &&
      std::ranges::find(kServers, url.host) == kServers.end()) {
    throw std::invalid_argument(
        std::string(kFull) + ": " + net::quoted(net::to_string(url)) +
        " is not allowed: it must be https, or http at this machine or at the address of ECS or "
        "EKS");
  }
  return url;
}

std::optional<Credentials> credentials_in(const ProfileSettings& settings) {
  Credentials found{.key_id = setting_of(settings, "aws_access_key_id"),
                    .secret = setting_of(settings, "aws_secret_access_key"),
                    .token = setting_of(settings, "aws_session_token")};
  if (found.key_id.empty() || found.secret.empty()) return std::nullopt;
  return found;
}

// Requests credentials from a server; empty: it is unavailable or refuses. Logs the refusal of a
// server that the user has configured, without the request.
std::string ask_metadata(const net::HttpQuestion& question, const net::HttpLimits& limits,
                         const net::ProxySettings& proxy, const std::string& ca_file,
                         const net::Interrupt& interrupt, bool is_expected) {
  net::HttpSession session(limits, ca_file, proxy, interrupt);
  const net::HttpAnswer answer = session.ask(question);
  if (!answer.error && answer.head.status == net::http_status::kOk) return answer.body;
  if (is_expected) {
    log_warning("no credentials from " + net::authority(question.url) + ": " +
                failure_text(answer));
  }
  return {};
}

}  // namespace

ProfileSettings read_profile(const StoreEnvironment& environment) {
  std::string name = environment.value_of("AWS_PROFILE");
  if (name.empty()) name = "default";
  // The credentials file wins over the config file: merge() keeps existing keys.
  ProfileSettings settings = profile_settings(
      small_file(profile_file(environment, "AWS_SHARED_CREDENTIALS_FILE", "credentials")), name,
      false);
  settings.merge(profile_settings(
      small_file(profile_file(environment, "AWS_CONFIG_FILE", "config")), name, true));
  return settings;
}

Credentials AwsCredentials::get() {
  const std::scoped_lock lock(mutex_);
  const auto now = std::chrono::system_clock::now();
  // The lock is held during the requests, too: other threads wait for the same credentials.
  if (known_ && (!known_->end || now < *known_->end - kRefreshBefore)) return *known_;
  if (auto found = find()) {
    known_ = std::move(found);
    log_debug("the store's credentials are from " + known_->source);
  }
  // Credentials that expire soon are better than none.
  if (!known_) throw std::system_error(StoreError::kNoCredentials, "cannot sign a request");
  return *known_;
}

void AwsCredentials::forget() {
  const std::scoped_lock lock(mutex_);
  known_.reset();
}

std::optional<Credentials> AwsCredentials::find() {
  const auto named = [](std::optional<Credentials> found, const char* source) {
    if (found) found->source = source;
    return found;
  };
  Credentials of_variables{.key_id = environment_.value_of("AWS_ACCESS_KEY_ID"),
                           .secret = environment_.value_of("AWS_SECRET_ACCESS_KEY"),
                           .token = environment_.value_of("AWS_SESSION_TOKEN")};
  // The order of Amazon's own tools.
  if (!of_variables.key_id.empty() && !of_variables.secret.empty()) {
    return named(std::move(of_variables), "the environment");
  }
  if (auto found = from_web_identity()) return named(std::move(found), "a web identity");
  if (auto found = credentials_in(read_profile(environment_))) {
    return named(std::move(found), "a profile");
  }
  if (auto found = from_container()) return named(std::move(found), "the container's server");
  return named(from_instance(), "the instance's metadata");
}

std::optional<Credentials> AwsCredentials::from_web_identity() {
  const std::string token =
      // Read each time: the cluster replaces the file before its token expires.
      std::string(net::trim(small_file(environment_.value_of("AWS_WEB_IDENTITY_TOKEN_FILE"))));
  const std::string role = environment_.value_of("AWS_ROLE_ARN");
  if (token.empty() || role.empty()) return std::nullopt;
  std::string session = environment_.value_of("AWS_ROLE_SESSION_NAME");
  if (session.empty()) session = "disttf";
  std::string endpoint = environment_.value_of("AWS_ENDPOINT_URL_STS");
  if (endpoint.empty()) endpoint = "https://sts." + region_ + ".amazonaws.com/";
  const std::string form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=" +
                           percent_encoded(role, false) +
                           "&RoleSessionName=" + percent_encoded(session, false) +
                           "&WebIdentityToken=" + percent_encoded(token, false);
  const net::HttpQuestion question{
      .method = "POST",
      .url = net::parse_url("AWS_ENDPOINT_URL_STS", endpoint),
      .fields = {{"Content-Type", "application/x-www-form-urlencoded"}},
      .body = std::as_bytes(std::span(form.data(), form.size())),
      .max_answer_bytes = kMaxCredentialBytes};
  return credentials_from_xml(ask_metadata(question, kTokenServiceLimits, environment_.proxy,
                                           environment_.value_of("AWS_CA_BUNDLE"), interrupt_,
                                           true));
}

std::optional<Credentials> AwsCredentials::from_container() {
  if (environment_.value_of("AWS_CONTAINER_CREDENTIALS_FULL_URI").empty() &&
      environment_.value_of("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").empty()) {
    return std::nullopt;
  }
  net::HttpQuestion question{.url = container_url(environment_),
                             .fields = {{"Accept", "application/json"}},
                             .body = {},
                             .max_answer_bytes = kMaxCredentialBytes};
  std::string token(
      net::trim(small_file(environment_.value_of("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"))));
  if (token.empty()) token = environment_.value_of("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  if (!token.empty()) question.fields.emplace_back("Authorization", token);
  // Without a proxy: the address is of this host, and a proxy must not see credentials.
  return credentials_from_json(ask_metadata(question, kMetadataLimits, {}, "", interrupt_, true));
}

std::optional<Credentials> AwsCredentials::from_instance() {
  // On other hosts the request below costs a timeout.
  if (net::to_lower(environment_.value_of("AWS_EC2_METADATA_DISABLED")) == "true") {
    return std::nullopt;
  }
  std::string endpoint = environment_.value_of("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (endpoint.empty()) endpoint = "http://169.254.169.254";
  while (endpoint.ends_with('/')) endpoint.pop_back();
  const auto ask = [&](const std::string& method, const std::string& path, NamedTexts fields) {
    const net::HttpQuestion question{
        .method = method,
        .url = net::parse_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", endpoint + path),
        .fields = std::move(fields),
        .body = {},
        .max_answer_bytes = kMaxCredentialBytes};
    return ask_metadata(question, kMetadataLimits, {}, "", interrupt_, false);
  };
  // IMDSv2: a session token first, which a forwarded request cannot obtain.
  const std::string token =
      ask("PUT", "/latest/api/token", {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}});
  if (token.empty()) return std::nullopt;
  const std::string folder = "/latest/meta-data/iam/security-credentials/";
  const std::string roles = ask("GET", folder, {{"X-aws-ec2-metadata-token", token}});
  const std::string role(net::trim(roles.substr(0, roles.find('\n'))));
  if (role.empty()) return std::nullopt;
  return credentials_from_json(
      ask("GET", folder + percent_encoded(role, false), {{"X-aws-ec2-metadata-token", token}}));
}

}  // namespace disttf::roles
