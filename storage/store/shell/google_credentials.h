// Credentials of Google, searched in the sources and the order of Google's own tools, exchanged for
// a token, and renewed before it expires.
//
//   GOOGLE_APPLICATION_CREDENTIALS -> gcloud's application_default_credentials.json -> the metadata
//   server of a machine, or of a node of GKE
//
// A file may also be of workload identity federation (storage/store/core/google_identity.h). Not
// supported: AWS, executables and certificates as sources of that, and other files that impersonate
// a service account; their type is rejected.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/http_session.h"
#include "net/waiting/interrupt.h"
#include "storage/store/core/google_identity.h"
#include "storage/store/shell/store_environment.h"

namespace disttf::roles {

// Callable from any thread.
class GoogleCredentials {
 public:
  GoogleCredentials(const StoreEnvironment& environment, const net::Interrupt& interrupt)
      : environment_(environment), interrupt_(interrupt) {}

  // The token of a request. Throws std::system_error: with StoreError::kNoGoogleCredentials if
  // there are no credentials, with kDenied if they are rejected, with kAway if the token server is
  // unavailable.
  [[nodiscard]] std::string token();
  // To be called when the token is reported as expired: the next token() is another.
  void forget();

 private:
  struct Found {
    GoogleIdentity identity;
    std::optional<FederatedIdentity> federated;  // set if the identity is of that kind
    std::string path;
  };
  using ReadToken = std::optional<GoogleToken> (*)(std::string_view, std::chrono::sys_seconds);

  [[nodiscard]] std::optional<Found> from_files() const;
  [[nodiscard]] GoogleToken changed(const Found& found) const;
  [[nodiscard]] GoogleToken exchanged(const Found& found) const;
  // The token by which another provider proves our identity.
  [[nodiscard]] std::string subject_token(const Found& found) const;
  // Posts `question` with the body from `body`, retries if that may help, and returns the answer as
  // parsed by `read`. The credentials are those of the file `path`.
  [[nodiscard]] GoogleToken posted(const std::string& path, net::HttpQuestion question,
                                   const std::function<std::string()>& body, ReadToken read) const;
  [[nodiscard]] std::optional<GoogleToken> from_metadata() const;

  const StoreEnvironment& environment_;
  const net::Interrupt& interrupt_;
  std::mutex mutex_;
  std::optional<GoogleToken> known_;
};

}  // namespace disttf::roles
