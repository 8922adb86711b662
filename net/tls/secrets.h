// The secret that all tasks of a run share, or several while one replaces another; and the keys
// that are derived from it, one for each pair of tasks and direction, with which the two
// authenticate each other (net/tls/secret_proof.h).
//
// This file is about where secrets come from and when they are read; net/tls/keyring.h is
// about what they are.
#pragma once

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
#include "net/tls/keyring.h"
#include "net/wire/handshake.h"

namespace disttf::net {

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

}  // namespace disttf::net
