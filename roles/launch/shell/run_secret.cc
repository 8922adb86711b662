#include "roles/launch/shell/run_secret.h"

#include <sys/random.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "net/tls/secrets.h"
#include "net/wire/base64.h"

namespace disttf::roles {

std::string make_run_secret() {
  std::array<std::byte, net::kLeastSecretBytes> bytes{};
  // getrandom() returns so few bytes completely, or fails.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    throw std::system_error(errno, std::generic_category(), "cannot make a secret for the run");
  }
  // Text, because it is passed in an environment variable and stored as a line.
  return net::base64(bytes);
}

std::vector<std::string> secret_variables(SecretOfRun kind, const std::string& made) {
  // A secret given by the user is in the environment already, or in a file that the flags name.
  if (kind == SecretOfRun::kGiven) return {};
  return {net::kSecretVariable + ("=" + made)};
}

}  // namespace disttf::roles
