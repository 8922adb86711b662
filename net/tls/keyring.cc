#include "net/tls/keyring.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

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

// The two steps of HKDF (RFC 5869); one block of output is enough.
Digest expand(const Digest& root, std::span<const std::byte> context) {
  std::vector<std::byte> message(context.begin(), context.end());
  message.push_back(std::byte{1});
  return hmac_sha256(root, message);
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

// The root key replaces the text, so that the process keeps no secret in clear. The label is HKDF's
// salt and carries the version of this derivation.
Secret::Secret(std::string_view text)
    : root_(hmac_sha256(bytes_of("disttf secret 1"), bytes_of(text))) {
  std::copy_n(expand(root_, bytes_of("fingerprint")).begin(), fingerprint_.size(),
              fingerprint_.begin());
}

std::array<std::byte, 32> Secret::key(std::span<const std::byte> context) const {
  // A label that differs from "fingerprint": the public fingerprint reveals nothing about a
  // connection's key.
  const auto label = bytes_of("connection ");
  std::vector<std::byte> info(label.begin(), label.end());
  info.insert(info.end(), context.begin(), context.end());
  return expand(root_, info);
}

Keyring::Keyring(std::vector<Secret> secrets) { set(std::move(secrets)); }

void Keyring::set(std::vector<Secret> secrets) {
  assert(!secrets.empty());
  secrets_ = std::move(secrets);
}

std::optional<Secret> Keyring::find(std::span<const std::byte> fingerprint) const {
  // Fingerprints cross the network in clear, so this comparison need not take constant time.
  for (const Secret& secret : secrets_) {
    if (std::ranges::equal(secret.fingerprint(), fingerprint)) return secret;
  }
  return std::nullopt;
}

void Keyring::agreed(const Peer& peer) {
  if (std::ranges::find(agreed_, peer) == agreed_.end()) agreed_.push_back(peer);
}

bool Keyring::may_be_changing(const Fingerprint& refused, const Peer& peer) const {
  return refused != offered().fingerprint() || std::ranges::find(agreed_, peer) != agreed_.end();
}

}  // namespace disttf::net
