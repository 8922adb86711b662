// What the tasks of a run share so that nobody else is one of them: a secret, or several while one
// takes the place of another. And the keys that are made of it, one for each pair of tasks and
// direction, by which the two know each other (net/transport/secret_proof.h).
//
// Which file they are of, and when it is read; net/transport/keyring.h is what they are.
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

#include "net/transport/credentials.h"
#include "net/transport/file_watch.h"
#include "net/transport/keyring.h"
#include "net/wire/handshake.h"

namespace disttf::net {

// The secret itself, in a task's environment. There is no flag for that: every user of a machine
// sees its command lines.
inline constexpr const char* kSecretVariable = "DISTTF_SECRET";

inline constexpr std::size_t kLeastSecretBytes = 32;
inline constexpr std::size_t kMostSecretBytes = 1024;
inline constexpr std::size_t kMostSecrets = 16;

// Who says HELLO to whom, and what for: what the key of a connection depends on. Says so in clear.
[[nodiscard]] std::vector<std::byte> pair_context(const Hello& hello);

// Callable from any thread.
class Secrets final : public Credentials {
 public:
  // One a line, the first is offered, each is accepted. Throws std::invalid_argument with one
  // sentence that begins with `source` and never shows a secret.
  Secrets(std::string_view text, const std::string& source);
  // The same of a file, which must be its owner's alone. It is read again where it has changed;
  // where it cannot be used then, `warn` gets a sentence and the secrets of before stay.
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
  // "ab12cd34", or "ab12cd34 or 0011aabb": of all that are accepted.
  [[nodiscard]] std::string fingerprints();

 private:
  void read_again();  // REQUIRES: mutex_ is held

  std::mutex mutex_;
  const std::string path_;          // empty: they are not of a file
  std::optional<FileWatch> watch_;  // guarded by mutex_; none: the same
  Keyring keyring_;                 // guarded by mutex_
};

}  // namespace disttf::net
