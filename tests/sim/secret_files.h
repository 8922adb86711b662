// The secret of a simulated run: a file on each node's machine, changed while the run goes on in
// the three steps of docs/security.md. The keyring, and whom a peer takes, are the real ones
// (net/transport/keyring.h); the cipher is left out, as nobody here can listen.
#pragma once

#include <cstddef>
#include <vector>

#include "net/transport/keyring.h"

namespace disttf::sim {

// Of one change, each in the files of all nodes before the next.
enum class SecretStep : unsigned char {
  kAccept,  // the new one below the old one
  kOffer,   // the new one above the old one
  kForget,  // the new one alone
};
inline constexpr std::size_t kSecretSteps = 3;

class SecretFiles {
 public:
  explicit SecretFiles(std::size_t nodes) : steps_(nodes) {}

  // The next step, in the file of that node.
  void change(std::size_t node) { ++steps_[node]; }
  // How often it has been changed.
  [[nodiscard]] std::size_t changes(std::size_t node) const { return steps_[node]; }
  // What it says now.
  [[nodiscard]] std::vector<net::Secret> read(std::size_t node);

 private:
  // Made once: each costs three HMACs.
  [[nodiscard]] net::Secret secret(std::size_t number);

  std::vector<std::size_t> steps_;  // by node
  std::vector<net::Secret> secrets_;
};

}  // namespace disttf::sim
