#include "net/tls/secret_proof.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <array>
#include <span>

namespace disttf::net {
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
