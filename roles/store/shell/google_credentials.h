// Who we are at Google: found where its own tools find it, in their order, changed for a token, and
// again before that ends.
//
//   GOOGLE_APPLICATION_CREDENTIALS -> gcloud's application_default_credentials.json -> the metadata
//   server of a machine, or of a node of GKE
//
// Left out: workload identity federation and impersonation, whose files are refused by their type.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "net/transport/interrupt.h"
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
    std::string path;
  };

  [[nodiscard]] std::optional<Found> from_files() const;
  [[nodiscard]] GoogleToken changed(const Found& found) const;
  [[nodiscard]] std::optional<GoogleToken> from_metadata() const;

  const StoreEnvironment& environment_;
  const net::Interrupt& interrupt_;
  std::mutex mutex_;
  std::optional<GoogleToken> known_;
};

}  // namespace disttf::roles
