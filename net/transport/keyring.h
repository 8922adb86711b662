// The secrets that one task of a run has: which one it offers, which it accepts, and what it makes
// of a peer that takes none of them.
//
// A secret itself is never shown: its fingerprint is, which tells two of them apart.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/handshake.h"

namespace disttf::net {

using Fingerprint = std::array<std::byte, 4>;
[[nodiscard]] std::string to_string(const Fingerprint& fingerprint);  // "ab12cd34"

class Secret {
 public:
  // REQUIRES: text is not empty.
  explicit Secret(std::string_view text);

  [[nodiscard]] const Fingerprint& fingerprint() const noexcept { return fingerprint_; }
  // The key for whatever `context` names: 32 bytes that tell nothing about the secret.
  [[nodiscard]] std::array<std::byte, 32> key(std::span<const std::byte> context) const;

 private:
  std::array<std::byte, 32> root_;
  Fingerprint fingerprint_{};
};

// A task of a run: a server's process sees those of one run after the other.
struct Peer {
  ClusterHash cluster;
  TaskId task;
  friend bool operator==(const Peer&, const Peer&) = default;
};
[[nodiscard]] inline Peer peer_of(const Hello& hello) { return {hello.cluster, hello.to}; }

// No files, no clock, no lock: net/transport/secrets.h has them.
class Keyring {
 public:
  // The first is offered, each is accepted. REQUIRES: there is one.
  explicit Keyring(std::vector<Secret> secrets);
  // In their place.
  void set(std::vector<Secret> secrets);

  [[nodiscard]] const Secret& offered() const noexcept { return secrets_.front(); }
  [[nodiscard]] std::optional<Secret> find(std::span<const std::byte> fingerprint) const;
  [[nodiscard]] const std::vector<Secret>& all() const noexcept { return secrets_; }

  // `peer` has taken what it was offered.
  void agreed(const Peer& peer);
  // `peer` has not taken the one with this fingerprint when it was offered that: whether it may
  // take what it is offered another time, since the secret of either is just changing. So it is
  // where another one would be offered now, and where the same peer has agreed before. Else they
  // have never had a secret in common, and nothing comes of waiting.
  [[nodiscard]] bool may_be_changing(const Fingerprint& refused, const Peer& peer) const;

 private:
  std::vector<Secret> secrets_;  // never empty
  std::vector<Peer> agreed_;     // each once: no more than its runs have tasks
};

}  // namespace disttf::net
