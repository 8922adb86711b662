// The credentials of AWS and of compatible stores, searched in the sources and the order of AWS'
// own tools, and renewed before they expire.
//
//   variables -> a web identity's token -> ~/.aws/credentials and config -> a container's server
//   -> an instance's metadata (IMDSv2)
//
// Not supported: SSO and credential_process, which need a person or a program.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "net/waiting/interrupt.h"
#include "storage/store/core/aws_identity.h"
#include "storage/store/shell/store_environment.h"

namespace disttf::roles {

// The profile that AWS_PROFILE names, or "default", merged from both files.
[[nodiscard]] ProfileSettings read_profile(const StoreEnvironment& environment);

// Callable from any thread.
class AwsCredentials {
 public:
  // `region`: of STS, where a web identity is exchanged for credentials.
  AwsCredentials(const StoreEnvironment& environment, std::string region,
                 const net::Interrupt& interrupt)
      : environment_(environment), region_(std::move(region)), interrupt_(interrupt) {}

  // Throws std::system_error with StoreError::kNoCredentials if there are none.
  [[nodiscard]] Credentials get();
  // To be called when a server reports them as expired: the next get() searches again.
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
