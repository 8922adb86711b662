#include "net/tls/secrets.h"

#include <openssl/crypto.h>

#include <utility>

#include "net/tls/private_file.h"
#include "net/tls/secret_proof.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr SecretLines kSecretLines{.what = "secret",
                                   .least_bytes = kLeastSecretBytes,
                                   .most_bytes = kMostSecretBytes,
                                   .most_lines = kMostSecrets};

// The text lines are erased after use, because a later core dump or memory disclosure must not
// contain them.
std::vector<Secret> secrets_of(std::vector<std::string> lines) {
  std::vector<Secret> secrets;
  for (std::string& line : lines) {
    secrets.emplace_back(line);
    OPENSSL_cleanse(line.data(), line.size());
  }
  return secrets;
}

std::vector<Secret> secrets_of_file(const std::string& path) {
  return secrets_of(secret_lines_of_file(path, "--secret_file " + quoted(path), kSecretLines));
}

// The byte order is fixed: both ends must compute the same context on any machine.
void put_task(std::vector<std::byte>& out, const TaskId& task) {
  out.push_back(static_cast<std::byte>(task.job));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<std::byte>(task.index >> shift));
  }
}

}  // namespace

// The context binds a handshake to the cluster and the two tasks, so it cannot be replayed between
// other tasks of the run.
std::vector<std::byte> pair_context(const Hello& hello) {
  std::vector<std::byte> context;
  for (const std::uint8_t byte : hello.cluster) context.push_back(std::byte{byte});
  put_task(context, hello.from);
  put_task(context, hello.to);
  context.push_back(static_cast<std::byte>(hello.purpose));
  return context;
}

Secrets::Secrets(std::string_view text, const std::string& source)
    : keyring_(secrets_of(secret_lines(text, source, kSecretLines))) {}

Secrets::Secrets(std::string path, std::function<void(std::string_view)> warn)
    : path_(std::move(path)),
      watch_(std::in_place, std::vector{path_}, "the previous secrets stay in use",
             std::move(warn)),
      keyring_(secrets_of_file(path_)) {}

// Every use of the keyring checks the file first, so a changed secret needs no restart.
void Secrets::read_again() {
  if (watch_) watch_->read_where_due([this] { keyring_.set(secrets_of_file(path_)); });
}

// The lock is needed because several threads (the listener, channels, replication) use one set of
// secrets.
Secret Secrets::offered() {
  const std::lock_guard lock(mutex_);
  read_again();
  return keyring_.offered();
}

std::optional<Secret> Secrets::find(std::span<const std::byte> fingerprint) {
  const std::lock_guard lock(mutex_);
  read_again();
  return keyring_.find(fingerprint);
}

void Secrets::agreed(const Peer& peer) {
  const std::lock_guard lock(mutex_);
  keyring_.agreed(peer);
}

bool Secrets::may_be_changing(const Fingerprint& refused, const Peer& peer) {
  const std::lock_guard lock(mutex_);
  read_again();
  return keyring_.may_be_changing(refused, peer);
}

std::unique_ptr<Proof> Secrets::to_say(const Hello& hello) {
  return std::make_unique<SecretProof>(*this, &hello);
}

std::unique_ptr<Proof> Secrets::to_accept() {
  return std::make_unique<SecretProof>(*this, nullptr);
}

std::vector<std::string> Secrets::files() const {
  return path_.empty() ? std::vector<std::string>() : std::vector{path_};
}

std::optional<Refusal> Secrets::refusal(std::error_code error, const std::string& whom,
                                        const std::string& /*detail*/) {
  // Fingerprints are shown instead of secrets, so logs can be compared without disclosing them.
  const std::string ours = "the secret of this task has the fingerprint " + fingerprints();
  if (error == TlsError::kOtherSecret) {
    return Refusal{kExitMisconfigured, whom + " has another secret: " + ours +
                                           "; compare it with the fingerprint in its log"};
  }
  if (error == TlsError::kNotTls) {
    return Refusal{kExitMisconfigured,
                   whom +
                       " speaks without TLS, and this task has a secret: give it the one with "
                       "the fingerprint " +
                       fingerprints() + " (--secret_file or DISTTF_SECRET)"};
  }
  if (error == TlsError::kNoSecret) {
    return Refusal{kExitMisconfigured,
                   whom + " did not agree to TLS 1.3 with a shared secret: " + ours};
  }
  return std::nullopt;
}

std::string Secrets::wanted_by(const std::string& whom) const {
  return whom +
         " accepts only peers that have its secret: give this task the same one (--secret_file "
         "or DISTTF_SECRET)";
}

std::string Secrets::fingerprints() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Secret& secret : keyring_.all()) {
    text += (text.empty() ? "" : " or ") + to_string(secret.fingerprint());
  }
  return text;
}

}  // namespace disttf::net
