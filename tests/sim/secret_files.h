// The secret of a simulated run: a file on each node's machine, changed during the run in the three
// steps of docs/security.md. The keyring and the decision which peers are accepted are the real
// ones (net/tls/secrets.h). There is no cipher, since nothing listens on simulated
// connections.
#pragma once

#include <cstddef>
#include <vector>

#include "net/tls/secrets.h"

namespace disttf::sim {

// The steps of a change. Each is made in the files of all nodes before the next.
enum class SecretStep : unsigned char {
  kAccept,  // the new secret below the old one
  kOffer,   // the new secret above the old one
  kForget,  // only the new secret
};
inline constexpr std::size_t kSecretSteps = 3;

class SecretFiles {
 public:
  explicit SecretFiles(std::size_t nodes) : steps_(nodes) {}

  // Makes the next step in the file of that node.
  void change(std::size_t node) { ++steps_[node]; }
  // Returns how often the file was changed.
  [[nodiscard]] std::size_t changes(std::size_t node) const { return steps_[node]; }
  // Returns the file's contents.
  [[nodiscard]] std::vector<net::Secret> read(std::size_t node);

 private:
  // Cached: each secret costs three HMACs.
  [[nodiscard]] net::Secret secret(std::size_t number);

  std::vector<std::size_t> steps_;  // by node
  std::vector<net::Secret> secrets_;
};

}  // namespace disttf::sim
