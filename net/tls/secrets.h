// Secrets of a run: where they come from, and how two tasks prove that they know one.
//
// The secret that all tasks of a run share, or several while one replaces another; and the keys
// that are derived from it, one for each pair of tasks and direction, with which the two
// authenticate each other.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/tls/credentials.h"
#include "net/tls/file_watch.h"
#include "net/wire/handshake.h"

namespace disttf::net {

// The secrets of one task of a run: which one it offers, which ones it accepts, and what a refusal
// by a peer means.
//
// A secret itself is never shown. Its fingerprint, which tells two secrets apart, may be.

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

// Uses no files, no clock and no lock.
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

// The environment variable with the secret itself. There is no flag for that, because every user of
// a machine sees its command lines.
inline constexpr const char* kSecretVariable = "DISTTF_SECRET";

inline constexpr std::size_t kLeastSecretBytes = 32;
inline constexpr std::size_t kMostSecretBytes = 1024;
inline constexpr std::size_t kMostSecrets = 16;

// What the key of a connection depends on: sender, receiver and purpose of the HELLO. Sent in
// clear.
[[nodiscard]] std::vector<std::byte> pair_context(const Hello& hello);

// Callable from any thread.
class Secrets final : public Credentials {
 public:
  // One secret a line; the first is offered, each is accepted. Throws std::invalid_argument with
  // one sentence that begins with `source` and never shows a secret.
  Secrets(std::string_view text, const std::string& source);
  // The same from a file, which must be private to its owner. The file is read again when it has
  // changed. If it is unusable then, `warn` gets a sentence and the previous secrets stay in use.
  // Throws std::invalid_argument.
  Secrets(std::string path, std::function<void(std::string_view)> warn);

  [[nodiscard]] std::unique_ptr<Proof> to_say(const Hello& hello) override;
  [[nodiscard]] std::unique_ptr<Proof> to_accept() override;
  [[nodiscard]] std::vector<std::string> files() const override;
  [[nodiscard]] std::optional<Refusal> refusal(std::error_code error, const std::string& whom,
                                               const std::string& detail) override;
  [[nodiscard]] std::string wanted_by(const std::string& whom) const override;

  [[nodiscard]] Secret offered();
  [[nodiscard]] std::optional<Secret> find(std::span<const std::byte> fingerprint);
  // See Keyring.
  void agreed(const Peer& peer);
  [[nodiscard]] bool may_be_changing(const Fingerprint& refused, const Peer& peer);
  // "ab12cd34", or "ab12cd34 or 0011aabb": the fingerprints of all accepted secrets.
  [[nodiscard]] std::string fingerprints();

 private:
  void read_again();  // REQUIRES: mutex_ is held

  std::mutex mutex_;
  const std::string path_;          // empty: not from a file
  std::optional<FileWatch> watch_;  // guarded by mutex_; nullopt: not from a file
  Keyring keyring_;                 // guarded by mutex_
};

// TLS with a secret that both ends have.
//
// The secret is an external PSK on top of a fresh key exchange (psk_dhe_ke, RFC 8446 and 9257), so
// learning the secret later does not decrypt earlier traffic. The name of the key is sent in clear:
// the secret's fingerprint, then pair_context(). The HELLO that follows must match it.
class SecretProof final : public Proof {
 public:
  // `hello`: the one to be sent; null: for the accepting end. `secrets` must outlive this object.
  SecretProof(Secrets& secrets, const Hello* hello);

  [[nodiscard]] SSL* make() override;
  [[nodiscard]] std::error_code check(SSL& ssl) override;
  [[nodiscard]] std::error_code why_not_shaken(SSL& ssl, int reason) override;
  [[nodiscard]] std::error_code why_ended(int reason) const override;
  [[nodiscard]] std::optional<std::string> misfit(const Hello& hello) const override;
  // Every peer that has the secret may do everything.
  [[nodiscard]] bool may_drive() const override { return true; }
  [[nodiscard]] std::string detail(std::error_code error, const std::string& self) const override;

 private:
  struct Callbacks;
  [[nodiscard]] TlsError other_secret() const;

  Secrets& secrets_;
  const bool accepts_;
  Peer peer_{};                  // connecting end: the task that it connects to
  std::vector<std::byte> name_;  // of the key, in clear
  // The fingerprint that a connecting peer has sent, until its secret has proved to be a shared
  // one.
  std::optional<Fingerprint> other_;
};

}  // namespace disttf::net
