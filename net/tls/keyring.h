// The secrets of one task of a run: which one it offers, which ones it accepts, and what a refusal
// by a peer means.
//
// A secret itself is never shown. Its fingerprint, which tells two secrets apart, may be.
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
  // Returns the key for `context`: 32 bytes that reveal nothing about the secret.
  [[nodiscard]] std::array<std::byte, 32> key(std::span<const std::byte> context) const;

 private:
  std::array<std::byte, 32> root_;
  Fingerprint fingerprint_{};
};

// A task of a run. The process of a server sees tasks of one run after the other.
struct Peer {
  ClusterHash cluster;
  TaskId task;
  friend bool operator==(const Peer&, const Peer&) = default;
};
[[nodiscard]] inline Peer peer_of(const Hello& hello) { return {hello.cluster, hello.to}; }

// Uses no files, no clock and no lock: net/tls/secrets.h has them.
class Keyring {
 public:
  // The first secret is offered, each is accepted. REQUIRES: there is one.
  explicit Keyring(std::vector<Secret> secrets);
  // Replaces the secrets.
  void set(std::vector<Secret> secrets);

  [[nodiscard]] const Secret& offered() const noexcept { return secrets_.front(); }
  [[nodiscard]] std::optional<Secret> find(std::span<const std::byte> fingerprint) const;
  [[nodiscard]] const std::vector<Secret>& all() const noexcept { return secrets_; }

  // Records that `peer` has accepted the offered secret.
  void agreed(const Peer& peer);
  // Whether `peer`, which has rejected the secret with this fingerprint, may accept a later offer
  // because one side's secret is just changing. True if another secret would be offered now, or if
  // the same peer has agreed before. Otherwise the two have never shared a secret, and waiting does
  // not help.
  [[nodiscard]] bool may_be_changing(const Fingerprint& refused, const Peer& peer) const;

 private:
  std::vector<Secret> secrets_;  // never empty
  std::vector<Peer> agreed_;     // without duplicates: at most the tasks of its runs
};

}  // namespace disttf::net
