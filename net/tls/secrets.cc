#include "net/tls/secrets.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <span>
#include <stdexcept>
#include <utility>

#include "net/tls/private_file.h"
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
  return joined(keyring_.all(), " or ",
                [](const Secret& secret) { return to_string(secret.fingerprint()); });
}

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

namespace {

constexpr std::array<unsigned char, 2> kSuiteOfKey{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

// A PSK is bound to a hash and not to a suite (RFC 8446, 4.2.11), so a session with this suite also
// admits the other one, which uses SHA-256 as well.
SSL_SESSION* session_of(SSL* ssl, std::span<const std::byte> key) {
  SSL_SESSION* const session = SSL_SESSION_new();
  const SSL_CIPHER* const suite = SSL_CIPHER_find(ssl, kSuiteOfKey.data());
  if (session == nullptr || suite == nullptr || SSL_SESSION_set_cipher(session, suite) != 1 ||
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) != 1 ||
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()),
                                  key.size()) != 1) {
    SSL_SESSION_free(session);
    return nullptr;
  }
  return session;
}

SecretProof* proof_of(const SSL* ssl) { return static_cast<SecretProof*>(SSL_get_app_data(ssl)); }

}  // namespace

// OpenSSL's callbacks.
struct SecretProof::Callbacks {
  static int offer(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** name,
                   std::size_t* size, SSL_SESSION** session) try {
    SecretProof& self = *proof_of(ssl);
    const Secret secret = self.secrets_.offered();
    const auto context = std::span<const std::byte>(self.name_).subspan(sizeof(Fingerprint));
    const auto& fingerprint = secret.fingerprint();
    std::copy(fingerprint.begin(), fingerprint.end(), self.name_.begin());
    *session = session_of(ssl, secret.key(context));
    *name = reinterpret_cast<const unsigned char*>(self.name_.data());
    *size = self.name_.size();
    return *session != nullptr ? 1 : 0;
  } catch (...) {  // out of memory: no exception may pass through OpenSSL
    return 0;
  }

  // An unknown key is answered like a wrong one, so that a prober learns nothing.
  static int find(SSL* ssl, const unsigned char* name, std::size_t size,
                  SSL_SESSION** session) try {
    SecretProof& self = *proof_of(ssl);
    const auto bytes = std::as_bytes(std::span(name, size));
    *session = nullptr;
    // Too short for a key's name. Without a session OpenSSL has no PSK, and the handshake fails.
    if (bytes.size() < sizeof(Fingerprint)) return 1;
    self.name_.assign(bytes.begin(), bytes.end());
    Fingerprint fingerprint{};
    std::copy_n(bytes.begin(), fingerprint.size(), fingerprint.begin());
    // For the log of a refusal. check() clears it once the handshake has proved a shared secret.
    self.other_ = fingerprint;
    std::array<std::byte, 32> key{};
    if (const auto secret = self.secrets_.find(fingerprint)) {
      key = secret->key(bytes.subspan(fingerprint.size()));
    } else if (RAND_bytes(reinterpret_cast<unsigned char*>(key.data()),
                          static_cast<int>(key.size())) != 1) {
      return 0;
    }
    *session = session_of(ssl, key);
    OPENSSL_cleanse(key.data(), key.size());
    return 1;
  } catch (...) {
    return 0;
  }

  // One context for all connections; what differs is in the proof.
  static SSL_CTX* context() {
    static SSL_CTX* const kContext = [] {
      SSL_CTX* const made = make_task_context();
      if (made == nullptr) return made;
      SSL_CTX_set_psk_find_session_callback(made, &find);
      SSL_CTX_set_psk_use_session_callback(made, &offer);
      return made;
    }();
    return kContext;
  }
};

SecretProof::SecretProof(Secrets& secrets, const Hello* hello)
    : secrets_(secrets), accepts_(hello == nullptr) {
  if (hello == nullptr) return;
  peer_ = peer_of(*hello);
  name_.resize(sizeof(Fingerprint));
  const std::vector<std::byte> context = pair_context(*hello);
  name_.insert(name_.end(), context.begin(), context.end());
}

SSL* SecretProof::make() {
  SSL_CTX* const context = Callbacks::context();
  SSL* const ssl = context != nullptr ? SSL_new(context) : nullptr;
  if (ssl == nullptr) return nullptr;
  SSL_set_app_data(ssl, this);
  // Certificates are not accepted: there is nothing to check them with. (A server asks for none.)
  if (!accepts_) SSL_set_verify(ssl, SSL_VERIFY_PEER, nullptr);
  return ssl;
}

std::error_code SecretProof::check(SSL& ssl) {
  // There is no other way to get here. The check guards against a connection without the secret.
  if (SSL_session_reused(&ssl) != 1) return TlsError::kNoSecret;
  other_.reset();
  if (!accepts_) secrets_.agreed(peer_);
  return {};
}

std::error_code SecretProof::why_not_shaken(SSL& /*ssl*/, int reason) {
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:  // what OpenSSL sends to the other side
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:      // what RFC 8446 requires
      return other_secret();
    default:
      return TlsError::kNoSecret;
  }
}

TlsError SecretProof::other_secret() const {
  // The accepting end offers nothing, so nothing of its own can be changing.
  if (accepts_) return TlsError::kOtherSecret;
  Fingerprint offered{};
  std::copy_n(name_.begin(), offered.size(), offered.begin());
  return secrets_.may_be_changing(offered, peer_) ? TlsError::kSecretChanges
                                                  : TlsError::kOtherSecret;
}

std::error_code SecretProof::why_ended(int /*reason*/) const { return TlsError::kBroken; }

std::optional<std::string> SecretProof::misfit(const Hello& hello) const {
  const std::vector<std::byte> context = pair_context(hello);
  const bool fits = name_.size() == sizeof(Fingerprint) + context.size() &&
                    std::ranges::equal(std::span(name_).subspan(sizeof(Fingerprint)), context);
  return fits ? std::nullopt
              : std::optional<std::string>("got a HELLO that does not match its key");
}

std::string SecretProof::detail(std::error_code error, const std::string& self) const {
  if (error != TlsError::kOtherSecret || !other_) return {};
  return "its secret has the fingerprint " + to_string(*other_) + ", and that of " + self + " " +
         secrets_.fingerprints();
}

}  // namespace disttf::net
