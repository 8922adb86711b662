#include "storage/store/shell/google_credentials.h"

#include <chrono>
#include <span>
#include <system_error>
#include <utility>

#include "net/http/http_session.h"
#include "net/http/http_status.h"
#include "net/wire/text.h"
#include "run/process/log.h"
#include "storage/store/core/store_error.h"
#include "storage/store/shell/store_session.h"

namespace disttf::roles {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxTokenAnswer = std::size_t{1} << 20U;
// A token that expires this soon could expire during the request.
constexpr auto kTokenRefreshBefore = 5min;
// Short: on most machines outside Google Cloud no host answers at this address.
constexpr net::HttpLimits kMachineLimits{.connect_timeout = 1s, .stall_timeout = 5s};
constexpr net::HttpLimits kTokenLimits{.connect_timeout = 5s, .stall_timeout = 15s};
// The address of the metadata server, for hosts without name resolution.
constexpr const char* kMetadataHost = "169.254.169.254";

// The reason why the answer of `place` is not a token.
StoreRefusal refusal_of_token(const net::Url& place, const net::HttpAnswer& answer) {
  if (answer.error) {
    StoreRefusal refusal = refusal_of_error(answer);
    if (!refusal.may_pass) refusal.error = StoreError::kDenied;
    return refusal;
  }
  const int status = answer.head.status;
  const bool may_pass = status == net::http_status::kRequestTimeout ||
                        status == net::http_status::kTooManyRequests ||
                        status >= net::http_status::kServerError;
  const std::string said = google_token_error(answer.body);
  return {.error = may_pass ? StoreError::kAway : StoreError::kDenied,
          .sentence = net::authority(place) + " answered " + net::status_text(answer.head) +
                      (said.empty() ? "" : ", " + said),
          .may_pass = may_pass};
}

}  // namespace

std::string GoogleCredentials::token() {
  const std::scoped_lock lock(mutex_);
  // Under the lock, requests included: other threads wait for the same token instead of requesting
  // one each.
  if (known_ && system_now() < known_->end - kTokenRefreshBefore) return known_->text;
  // Read each time, so that a replaced key takes effect without a restart.
  if (const auto found = from_files()) {
    known_ = changed(*found);
    log_debug("the store's token is for the identity in " + found->path);
  } else if (auto of_machine = from_metadata()) {
    known_ = *std::move(of_machine);
    log_debug("the store's token is from this machine's metadata server");
  } else if (!known_) {  // a token that expires soon is better than none
    throw std::system_error(StoreError::kNoGoogleCredentials, "cannot ask the store");
  }
  return known_->text;
}

void GoogleCredentials::forget() {
  const std::scoped_lock lock(mutex_);
  known_.reset();
}

std::optional<GoogleCredentials::Found> GoogleCredentials::from_files() const {
  std::string path = environment_.value_of("GOOGLE_APPLICATION_CREDENTIALS");
  const bool is_named = !path.empty();
  if (!is_named) {
    std::string folder = environment_.value_of("CLOUDSDK_CONFIG");
    if (const std::string home = environment_.value_of("HOME"); folder.empty() && !home.empty()) {
      folder = home + "/.config/gcloud";
    }
    if (folder.empty()) return std::nullopt;
    path = folder + "/application_default_credentials.json";
  }
  std::string why = "is empty";
  const std::string text = small_file(path, &why);
  // A file that is named must be usable. gcloud's may be absent.
  if (text.empty() && !is_named) return std::nullopt;
  Found found{.identity = {}, .federated = {}, .path = path};
  auto identity = text.empty() ? std::nullopt : google_identity_from(text, why);
  const bool is_federated = identity && identity->kind == GoogleIdentity::Kind::kFederated;
  if (is_federated) found.federated = federated_identity_from(text, why);
  if (!identity || is_federated != found.federated.has_value()) {
    throw std::system_error(
        StoreError::kDenied,
        (is_named ? "GOOGLE_APPLICATION_CREDENTIALS: " : "") + net::quoted(path) + " " + why);
  }
  found.identity = *std::move(identity);
  return found;
}

GoogleToken GoogleCredentials::posted(const std::string& path, net::HttpQuestion question,
                                      const std::function<std::string()>& body,
                                      ReadToken read) const {
  question.method = "POST";
  question.max_answer_bytes = kMaxTokenAnswer;
  std::optional<GoogleToken> token;
  // The body is made for each try: it has a signature over the current time.
  const auto ask_once = [&] {
    const std::string text = body();
    question.body = std::as_bytes(std::span(text.data(), text.size()));
    net::HttpSession session(kTokenLimits, "", environment_.proxy, interrupt_);
    return session.ask(question);
  };
  const auto refusal_of = [&](const net::HttpAnswer& answer) -> std::optional<StoreRefusal> {
    if (!answer.error && answer.head.status == net::http_status::kOk)
      token = read(answer.body, system_now());
    // An answer without a token is refused, too, whatever its status.
    return token ? std::nullopt : std::optional(refusal_of_token(question.url, answer));
  };
  static_cast<void>(ask_with_retries({.what = "a token for the identity in " + net::quoted(path),
                                      .ask = ask_once,
                                      .refusal_of = refusal_of},
                                     interrupt_));
  return *std::move(token);
}

GoogleToken GoogleCredentials::changed(const Found& found) const {
  if (found.federated) return exchanged(found);
  const auto form = [&] {
    auto text = token_request(found.identity, system_now());
    if (!text) {
      throw std::system_error(StoreError::kDenied,
                              net::quoted(found.path) + ": private_key is not an RSA key in PEM");
    }
    return *std::move(text);
  };
  return posted(found.path,
                {.url = net::parse_url("token_uri in " + found.path, found.identity.token_url),
                 .fields = {{"Content-Type", "application/x-www-form-urlencoded"}},
                 .body = {}},
                form, google_token_from);
}

std::string GoogleCredentials::subject_token(const Found& found) const {
  const FederatedIdentity& who = *found.federated;
  std::string place = who.file;
  std::string text;
  if (who.url.empty()) {
    // Read for each exchange: the provider replaces the file before its token expires.
    text = small_file(who.file);
  } else {
    const net::Url url = net::parse_url("the credential_source in " + found.path, who.url);
    place = net::to_string(url);
    const auto refusal_of = [&](const net::HttpAnswer& answer) -> std::optional<StoreRefusal> {
      if (!answer.error && answer.head.status == net::http_status::kOk) return std::nullopt;
      return refusal_of_token(url, answer);
    };
    text = ask_with_retries(
               {.what = "the subject token for the identity in " + net::quoted(found.path),
                .ask =
                    [&] {
                      net::HttpSession session(kTokenLimits, "", environment_.proxy, interrupt_);
                      return session.ask({.url = url,
                                          .fields = who.fields,
                                          .body = {},
                                          .max_answer_bytes = kMaxTokenAnswer});
                    },
                .refusal_of = refusal_of},
               interrupt_)
               .body;
  }
  auto token = subject_token_from(who, text);
  if (!token) {
    throw std::system_error(
        StoreError::kDenied,
        net::quoted(found.path) + ": there is no subject token in " + net::quoted(place));
  }
  return *std::move(token);
}

GoogleToken GoogleCredentials::exchanged(const Found& found) const {
  const FederatedIdentity& who = *found.federated;
  const std::string subject = subject_token(found);
  GoogleToken token = posted(
      found.path,
      {.url = net::parse_url("token_url in " + found.path, found.identity.token_url),
       .fields = exchange_fields(who),
       .body = {}},
      [&] { return exchange_form(who, subject); }, google_token_from);
  // Else the token only authorizes the request for one of the service account.
  if (who.impersonation.empty()) return token;
  return posted(
      found.path,
      {.url =
           net::parse_url("service_account_impersonation_url in " + found.path, who.impersonation),
       .fields = {{"Content-Type", "application/json"}, {"Authorization", "Bearer " + token.text}},
       .body = {}},
      [&] { return impersonation_body(who); }, impersonated_token_from);
}

std::optional<GoogleToken> GoogleCredentials::from_metadata() const {
  if (net::to_lower(environment_.value_of("NO_GCE_CHECK")) == "true") return std::nullopt;
  std::string host = environment_.value_of("GCE_METADATA_HOST");
  const bool is_expected = !host.empty();
  if (!is_expected) host = kMetadataHost;
  const net::Url url = net::parse_url(
      "GCE_METADATA_HOST",
      "http://" + host + "/computeMetadata/v1/instance/service-accounts/default/token");
  // Without a proxy: the address is of this host. A page of a browser cannot send the header below.
  net::HttpSession session(kMachineLimits, "", {}, interrupt_);
  const net::HttpAnswer answer = session.ask({.url = url,
                                              .fields = {{"Metadata-Flavor", "Google"}},
                                              .body = {},
                                              .max_answer_bytes = kMaxTokenAnswer});
  if (!answer.error && answer.head.status == net::http_status::kOk) {
    return google_token_from(answer.body, system_now());
  }
  // Without GCE_METADATA_HOST, no metadata server is the usual case.
  if (is_expected) {
    log_warning("no token from " + net::authority(url) + ": " + failure_text(answer));
  }
  return std::nullopt;
}

}  // namespace disttf::roles
