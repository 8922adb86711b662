// Who we are at AWS, and at whatever speaks its protocol: found where its own tools find it, in
// their order, and found again before it ends.
//
//   variables -> a web identity's token -> ~/.aws/credentials and config -> a container's server
//   -> an instance's metadata (IMDSv2)
//
// Left out: SSO and credential_process, which need a person or a program.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "net/transport/interrupt.h"
#include "roles/store/core/aws_profile.h"
#include "roles/store/core/sigv4.h"
#include "roles/store/shell/store_environment.h"

namespace disttf::roles {

// The profile that AWS_PROFILE names, "default" without it, of both files.
[[nodiscard]] ProfileSettings read_profile(const StoreEnvironment& environment);

// Callable from any thread.
class AwsCredentials {
 public:
  // `region`: of STS, where a web identity is changed for credentials.
  AwsCredentials(const StoreEnvironment& environment, std::string region,
                 const net::Interrupt& interrupt)
      : environment_(environment), region_(std::move(region)), interrupt_(interrupt) {}

  // Throws std::system_error with StoreError::kNoCredentials where there are none.
  [[nodiscard]] Credentials get();
  // They were said to be no longer good: the next get() looks again.
  void forget();

 private:
  [[nodiscard]] std::optional<Credentials> find();
  [[nodiscard]] std::optional<Credentials> from_web_identity();
  [[nodiscard]] std::optional<Credentials> from_container();
  [[nodiscard]] std::optional<Credentials> from_instance();

  const StoreEnvironment& environment_;
  const std::string region_;
  const net::Interrupt& interrupt_;
  std::mutex mutex_;
  std::optional<Credentials> known_;
};

}  // namespace disttf::roles
