#include "net/transport/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <asio/error.hpp>
#include <cerrno>
#include <utility>

namespace disttf::net {
namespace {

// Both of one hash, SHA-256, to which a key is bound; the key names the first.
constexpr const char* kSuites = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";
constexpr std::array<unsigned char, 2> kSuiteOfKey{0x13, 0x01};

class TlsCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "disttf tls"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<TlsError>(code)) {
      case TlsError::kOtherSecret:
        return "the peer has another secret";
      case TlsError::kNotTls:
        return "the peer speaks without TLS";
      case TlsError::kNoSecret:
        return "no TLS by a shared secret";
      case TlsError::kCut:
        return "the connection was cut off";
      case TlsError::kBroken:
        return "a TLS record was changed on its way";
    }
    return "unknown TLS error " + std::to_string(code);
  }
};

TlsStream* stream_of(const SSL* ssl) { return static_cast<TlsStream*>(SSL_get_app_data(ssl)); }

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

}  // namespace

const std::error_category& tls_category() noexcept {
  static const TlsCategory category;
  return category;
}

std::error_code make_error_code(TlsError error) noexcept {
  return {static_cast<int>(error), tls_category()};
}

std::optional<Refusal> tls_refusal(std::error_code error, const std::string& whom,
                                   Secrets& secrets) {
  const std::string ours = "the secret of this task has the fingerprint " + secrets.fingerprints();
  if (error == TlsError::kOtherSecret) {
    return Refusal{kExitMisconfigured, whom + " has another secret: " + ours +
                                           ", which is to be compared with what is in its log"};
  }
  if (error == TlsError::kNotTls) {
    return Refusal{kExitMisconfigured,
                   whom +
                       " speaks without TLS, and this task has a secret: give it the one with "
                       "the fingerprint " +
                       secrets.fingerprints() + " (--secret_file or DISTTF_SECRET)"};
  }
  if (error == TlsError::kNoSecret) {
    return Refusal{kExitMisconfigured,
                   whom + " did not agree to TLS 1.3 by a shared secret: " + ours};
  }
  return std::nullopt;
}

std::string needs_secret(const std::string& whom) {
  return whom +
         " speaks with nobody who has not its secret: give this task the same one (--secret_file "
         "or DISTTF_SECRET)";
}

// What OpenSSL calls.
struct TlsStream::Callbacks {
  static int offer(SSL* ssl, const EVP_MD* /*digest*/, const unsigned char** name,
                   std::size_t* size, SSL_SESSION** session) try {
    TlsStream& self = *stream_of(ssl);
    const Secret secret = self.secrets_.offered();
    const auto context = std::span<const std::byte>(self.name_).subspan(sizeof(Fingerprint));
    std::ranges::copy(secret.fingerprint(), self.name_.begin());
    *session = session_of(ssl, secret.key(context));
    *name = reinterpret_cast<const unsigned char*>(self.name_.data());
    *size = self.name_.size();
    return *session != nullptr ? 1 : 0;
  } catch (...) {  // out of memory: nothing may leave through OpenSSL
    return 0;
  }

  // A key that nobody has is answered like one that is wrong: who asks learns nothing by it.
  static int find(SSL* ssl, const unsigned char* name, std::size_t size,
                  SSL_SESSION** session) try {
    TlsStream& self = *stream_of(ssl);
    const auto bytes = std::as_bytes(std::span(name, size));
    *session = nullptr;
    if (bytes.size() < sizeof(Fingerprint)) return 1;
    self.name_.assign(bytes.begin(), bytes.end());
    Fingerprint fingerprint{};
    std::ranges::copy(bytes.first(fingerprint.size()), fingerprint.begin());
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

  // One for all streams of a kind: what differs is with the stream.
  static SSL_CTX* context(bool accepts) {
    static SSL_CTX* const kServer = make_context(true);
    static SSL_CTX* const kClient = make_context(false);
    return accepts ? kServer : kClient;
  }

  static SSL_CTX* make_context(bool accepts) {
    OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
    SSL_CTX* const made = SSL_CTX_new(accepts ? TLS_server_method() : TLS_client_method());
    if (made == nullptr) return nullptr;
    SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(made, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    // A certificate is no way in: there is nothing to check one by. (Of a client none is asked.)
    if (!accepts) SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nullptr);
    if (accepts) SSL_CTX_set_psk_find_session_callback(made, &Callbacks::find);
    if (!accepts) SSL_CTX_set_psk_use_session_callback(made, &Callbacks::offer);
    if (SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) == 1 &&
        SSL_CTX_set_num_tickets(made, 0) == 1 && SSL_CTX_set_ciphersuites(made, kSuites) == 1) {
      return made;
    }
    SSL_CTX_free(made);
    return nullptr;
  }
};

bool TlsStream::make(bool accepts) {
  SSL_CTX* const context = Callbacks::context(accepts);
  ssl_ = context != nullptr ? SSL_new(context) : nullptr;
  BIO* const bio = ssl_ != nullptr ? socket_.make_bio() : nullptr;
  if (bio == nullptr) return false;
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  if (accepts) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
  return true;
}

std::unique_ptr<TlsStream> TlsStream::connect(int fd, Secrets& secrets, const Hello& hello,
                                              bool reads_ahead) {
  std::unique_ptr<TlsStream> stream(new TlsStream(fd, secrets, reads_ahead));
  stream->name_.resize(sizeof(Fingerprint));
  const std::vector<std::byte> context = pair_context(hello);
  stream->name_.insert(stream->name_.end(), context.begin(), context.end());
  return stream->make(false) ? std::move(stream) : nullptr;
}

std::unique_ptr<TlsStream> TlsStream::accept(int fd, Secrets& secrets) {
  std::unique_ptr<TlsStream> stream(new TlsStream(fd, secrets, true /* reads ahead */));
  return stream->make(true) ? std::move(stream) : nullptr;
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

std::error_code TlsStream::shake_hands() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  const std::error_code error = flushed(result != 1 ? failure(result) : std::error_code{});
  if (error) return error;
  // There is no other way to have got here; but what is not so must not pass for it.
  if (SSL_session_reused(ssl_) != 1) {
    has_failed_ = true;
    return TlsError::kNoSecret;
  }
  is_shaken_ = true;
  other_.reset();
  return {};
}

std::error_code TlsStream::flushed(std::error_code error) noexcept {
  if (!socket_.has_unsent()) return error;
  const std::error_code unsent = socket_.flush();
  if (unsent == asio::error::would_block) waits_for_ = POLLOUT;
  const bool may_go_on = !error || error == asio::error::would_block;
  return unsent && may_go_on ? unsent : error;
}

std::error_code TlsStream::failure(int result) {
  const int system = errno;
  const int kind = SSL_get_error(ssl_, result);
  waits_for_ = kind == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  has_failed_ = true;
  if (socket_.has_ended()) {
    return is_shaken_ || socket_.has_heard() ? TlsError::kCut : make_error_code(asio::error::eof);
  }
  if (kind == SSL_ERROR_SYSCALL) return {system, std::system_category()};
  const std::error_code why = is_shaken_ ? TlsError::kBroken : why_not_shaken();
  ERR_clear_error();
  return why;
}

std::error_code TlsStream::why_not_shaken() noexcept {
  if (socket_.is_plain()) return TlsError::kNotTls;
  switch (ERR_GET_REASON(ERR_peek_error())) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:  // so OpenSSL says it to the other side
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:      // as RFC 8446 has it
      return TlsError::kOtherSecret;
    default:
      return TlsError::kNoSecret;
  }
}

std::size_t TlsStream::read_some(std::span<std::byte> into, std::error_code& error) {
  error = {};
  std::size_t taken = 0;
  if (into.empty()) return 0;
  socket_.expect(into.size());
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_, into.data(), into.size(), &taken);
  if (result != 1) error = failure(result);
  socket_.expect(0);
  // To read may be to answer: why there is an end, say. It is nothing that a reader waits for.
  if (socket_.has_unsent()) static_cast<void>(socket_.flush());
  return taken;
}

// Header and the beginning of the body are one record.
std::size_t TlsStream::write_record(std::span<const std::byte> header,
                                    std::span<const std::byte> body, std::size_t sent,
                                    std::error_code& error) {
  std::array<std::byte, kRecordBytes> first;
  std::span<const std::byte> next;
  if (sent < header.size()) {
    const auto head = header.subspan(sent);
    const auto start = body.first(std::min(body.size(), first.size() - head.size()));
    std::ranges::copy(start, std::ranges::copy(head, first.begin()).out);
    next = std::span(first).first(head.size() + start.size());
  } else {
    next = body.subspan(sent - header.size());
  }
  std::size_t written = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_, next.data(), next.size(), &written);
  if (result != 1) error = failure(result);
  return written;
}

std::size_t TlsStream::write_some(std::span<const std::byte> header,
                                  std::span<const std::byte> body, std::size_t sent,
                                  std::error_code& error) {
  error = {};
  const std::size_t whole = header.size() + body.size();
  // What the socket was too full for goes first, and alone.
  const bool is_again = gathered_ != 0;
  while (!is_again && sent + gathered_ < whole && socket_.has_room()) {
    gathered_ += write_record(header, body, sent + gathered_, error);
    if (error) return 0;
  }
  error = flushed({});
  return error ? 0 : std::exchange(gathered_, 0);
}

bool TlsStream::has_bytes() const noexcept {
  return SSL_has_pending(ssl_) == 1 || socket_.has_bytes();
}

void TlsStream::finish() noexcept {
  if (!is_shaken_ || has_failed_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  static_cast<void>(socket_.flush());
  ERR_clear_error();
}

bool TlsStream::fits(const Hello& hello) const {
  const std::vector<std::byte> context = pair_context(hello);
  return name_.size() == sizeof(Fingerprint) + context.size() &&
         std::ranges::equal(std::span(name_).subspan(sizeof(Fingerprint)), context);
}

}  // namespace disttf::net
