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

std::string_view trimmed(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = line.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return line.substr(first, line.find_last_not_of(kBlank) - first + 1);
}

std::vector<Secret> parse(std::string_view text, const std::string& source) {
  std::vector<Secret> secrets;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    if (line.size() < kLeastSecretBytes || line.size() > kMostSecretBytes) {
      throw std::invalid_argument(source + " has a secret of " + std::to_string(line.size()) +
                                  " bytes: allowed are " + std::to_string(kLeastSecretBytes) +
                                  " to " + std::to_string(kMostSecretBytes) +
                                  " random ones in a line");
    }
    secrets.emplace_back(line);
  }
  if (secrets.empty() || secrets.size() > kMostSecrets) {
    throw std::invalid_argument(source + " has " + std::to_string(secrets.size()) +
                                " secrets: allowed are 1 to " + std::to_string(kMostSecrets) +
                                ", one a line");
  }
  return secrets;
}

constexpr std::size_t kMostFileBytes = (kMostSecretBytes + 2) * kMostSecrets;

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
    : secrets_(parse(text, source)) {}

Secrets::Secrets(std::string path, std::function<void(std::string_view)> warn)
    : path_(std::move(path)), warn_(std::move(warn)) {
  std::string text = read_private_file(path_, source_of(path_), kMostFileBytes, seen_);
  secrets_ = parse(text, source_of(path_));
  OPENSSL_cleanse(text.data(), text.size());
}

void Secrets::read_again() {
  if (path_.empty()) return;
  const FileSeen now = FileSeen::of(path_);
  if (now == FileSeen{} || now == seen_) return;  // being replaced: looked at again next time
  seen_ = now;
  try {
    std::string text = read_private_file(path_, source_of(path_), kMostFileBytes, seen_);
    secrets_ = parse(text, source_of(path_));
    OPENSSL_cleanse(text.data(), text.size());
  } catch (const std::invalid_argument& error) {
    if (warn_) warn_(std::string(error.what()) + "; the secrets of before stay");
  }
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
