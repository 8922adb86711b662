#include "net/transport/secrets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <stdexcept>

#include "net/transport/private_file.h"
#include "net/transport/secret_proof.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

using Digest = std::array<std::byte, 32>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Digest hmac_sha256(std::span<const std::byte> key, std::span<const std::byte> message) {
  Digest digest{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(message.data()), message.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr) {
    throw std::runtime_error("OpenSSL has no HMAC-SHA256");
  }
  return digest;
}

// HKDF (RFC 5869) in its two steps; one block is all that is asked for.
Digest expand(const Digest& root, std::span<const std::byte> context) {
  std::vector<std::byte> message(context.begin(), context.end());
  message.push_back(std::byte{1});
  return hmac_sha256(root, message);
}

constexpr SecretLines kSecretLines{.what = "secret",
                                   .least_bytes = kLeastSecretBytes,
                                   .most_bytes = kMostSecretBytes,
                                   .most_lines = kMostSecrets};

std::vector<Secret> secrets_of(std::vector<std::string> lines) {
  std::vector<Secret> secrets;
  for (std::string& line : lines) {
    secrets.emplace_back(line);
    OPENSSL_cleanse(line.data(), line.size());
  }
  return secrets;
}

std::string source_of(const std::string& path) { return "--secret_file " + quoted(path); }

void put_task(std::vector<std::byte>& out, const TaskId& task) {
  out.push_back(static_cast<std::byte>(task.job));
  for (unsigned shift = 0; shift < 32; shift += 8) {
    out.push_back(static_cast<std::byte>(task.index >> shift));
  }
}

}  // namespace

std::string to_string(const Fingerprint& fingerprint) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte byte : fingerprint) {
    text += kDigits[std::to_integer<unsigned>(byte) >> 4U];
    text += kDigits[std::to_integer<unsigned>(byte) & 15U];
  }
  return text;
}

Secret::Secret(std::string_view text)
    : root_(hmac_sha256(bytes_of("disttf secret 1"), bytes_of(text))) {
  std::copy_n(expand(root_, bytes_of("fingerprint")).begin(), fingerprint_.size(),
              fingerprint_.begin());
}

std::array<std::byte, 32> Secret::key(std::span<const std::byte> context) const {
  const auto label = bytes_of("connection ");
  std::vector<std::byte> info(label.begin(), label.end());
  info.insert(info.end(), context.begin(), context.end());
  return expand(root_, info);
}

std::vector<std::byte> pair_context(const Hello& hello) {
  std::vector<std::byte> context;
  for (const std::uint8_t byte : hello.cluster) context.push_back(std::byte{byte});
  put_task(context, hello.from);
  put_task(context, hello.to);
  context.push_back(static_cast<std::byte>(hello.purpose));
  return context;
}

Secrets::Secrets(std::string_view text, const std::string& source)
    : secrets_(secrets_of(secret_lines(text, source, kSecretLines))) {}

Secrets::Secrets(std::string path, std::function<void(std::string_view)> warn)
    : path_(std::move(path)),
      watch_(std::in_place, std::vector{path_}, "the secrets of before stay", std::move(warn)) {
  read();
}

void Secrets::read() {
  secrets_ = secrets_of(secret_lines_of_file(path_, source_of(path_), kSecretLines));
}

void Secrets::read_again() {
  if (watch_) watch_->read_where_due([this] { read(); });
}

Secret Secrets::offered() {
  const std::lock_guard lock(mutex_);
  read_again();
  return secrets_.front();
}

std::optional<Secret> Secrets::find(std::span<const std::byte> fingerprint) {
  const std::lock_guard lock(mutex_);
  read_again();
  for (const Secret& secret : secrets_) {
    if (std::ranges::equal(secret.fingerprint(), fingerprint)) return secret;
  }
  return std::nullopt;
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
  const std::string ours = "the secret of this task has the fingerprint " + fingerprints();
  if (error == TlsError::kOtherSecret) {
    return Refusal{kExitMisconfigured, whom + " has another secret: " + ours +
                                           ", which is to be compared with what is in its log"};
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
                   whom + " did not agree to TLS 1.3 by a shared secret: " + ours};
  }
  return std::nullopt;
}

std::string Secrets::wanted_by(const std::string& whom) const {
  return whom +
         " speaks with nobody who has not its secret: give this task the same one (--secret_file "
         "or DISTTF_SECRET)";
}

std::string Secrets::fingerprints() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const Secret& secret : secrets_) {
    text += (text.empty() ? "" : " or ") + to_string(secret.fingerprint());
  }
  return text;
}

}  // namespace disttf::net
