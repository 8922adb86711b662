#include "tests/sim/secret_files.h"

#include <string>

namespace disttf::sim {

net::Secret SecretFiles::secret(std::size_t number) {
  while (secrets_.size() <= number) {
    secrets_.emplace_back("secret number " + std::to_string(secrets_.size()) + " of a simulation");
  }
  return secrets_[number];
}

std::vector<net::Secret> SecretFiles::read(std::size_t node) {
  const std::size_t old = steps_[node] / kSecretSteps;
  switch (static_cast<SecretStep>((steps_[node] + kSecretSteps - 1) % kSecretSteps)) {
    case SecretStep::kAccept:
      return {secret(old), secret(old + 1)};
    case SecretStep::kOffer:
      return {secret(old + 1), secret(old)};
    case SecretStep::kForget:
      break;
  }
  return {secret(old)};
}

}  // namespace disttf::sim
