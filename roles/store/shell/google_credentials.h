// Who we are at Google: found where its own tools find it, in their order, changed for a token, and
// again before that ends.
//
//   GOOGLE_APPLICATION_CREDENTIALS -> gcloud's application_default_credentials.json -> the metadata
//   server of a machine, or of a node of GKE
//
// A file may also be of workload identity federation (roles/store/core/google_federation.h). Left
// out: of that AWS, executables and certificates as sources; and files that impersonate a service
// account otherwise, which are refused by their type.
#pragma once

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/http_session.h"
#include "net/transport/interrupt.h"
#include "roles/store/core/google_federation.h"
#include "roles/store/core/google_identity.h"
#include "roles/store/shell/store_environment.h"

namespace disttf::roles {

// Callable from any thread.
class GoogleCredentials {
 public:
  GoogleCredentials(const StoreEnvironment& environment, const net::Interrupt& interrupt)
      : environment_(environment), interrupt_(interrupt) {}

  // A token that goes with a request. Throws std::system_error: with
  // StoreError::kNoGoogleCredentials where there is nothing to have one for, with kDenied where
  // that is of no use, with kAway where the server of tokens could not be had.
  [[nodiscard]] std::string token();
  // It was said to be no longer good: the next token() is another.
  void forget();

 private:
  struct Found {
    GoogleIdentity identity;
    std::optional<FederatedIdentity> federated;  // where the identity is of that kind
    std::string path;
  };
  using ReadToken = std::optional<GoogleToken> (*)(std::string_view, std::chrono::sys_seconds);

  [[nodiscard]] std::optional<Found> from_files() const;
  [[nodiscard]] GoogleToken changed(const Found& found) const;
  [[nodiscard]] GoogleToken exchanged(const Found& found) const;
  // What somebody else says that we are.
  [[nodiscard]] std::string subject_token(const Found& found) const;
  // What `read` makes of the answer to `question`, which is asked again where that may help, with
  // the body that `body` then says. For the identity in the file `path`.
  [[nodiscard]] GoogleToken posted(const std::string& path, net::HttpQuestion question,
                                   const std::function<std::string()>& body, ReadToken read) const;
  [[nodiscard]] std::optional<GoogleToken> from_metadata() const;

  const StoreEnvironment& environment_;
  const net::Interrupt& interrupt_;
  std::mutex mutex_;
  std::optional<GoogleToken> known_;
};

}  // namespace disttf::roles
