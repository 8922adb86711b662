#include "net/http/tls_identity.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <asio/error.hpp>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <utility>

#include "net/http/http_connection.h"
#include "net/tls/certificate_files.h"
#include "net/tls/tls_error.h"

namespace disttf::net {
namespace {

// Not OpenSSL's own socket BIO, whose writes raise SIGPIPE when the peer has gone.
int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const int fd = *static_cast<const int*>(BIO_get_data(bio));
  const ssize_t sent = ::send(fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const int fd = *static_cast<const int*>(BIO_get_data(bio));
  const ssize_t taken = ::recv(fd, bytes, static_cast<std::size_t>(size), 0);
  if (taken < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(taken);
}

long control_socket(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "disttf");
    if (made == nullptr) return made;
    BIO_meth_set_write(made, &write_socket);
    BIO_meth_set_read(made, &read_socket);
    BIO_meth_set_ctrl(made, &control_socket);
    return made;
  }();
  return kMethod;
}

// What browsers and clients have supported for ten years, and no more: Mozilla's "intermediate" of
// 2024, without finite fields. All have forward secrecy, and none uses CBC. The ciphers of TLS 1.3
// qualify anyway.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr const char* kGroups = "X25519:P-256:P-384";

}  // namespace

void TlsIdentity::Free::operator()(SSL_CTX* context) const noexcept { SSL_CTX_free(context); }

TlsIdentity::TlsIdentity(std::string certificate_file, std::string key_file,
                         std::function<void(std::string_view)> warn)
    : certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      watch_({certificate_file_, key_file_}, "the previous certificate stays in use",
             std::move(warn)),
      context_(read()) {}

TlsIdentity::Context TlsIdentity::read() const {
  ignore_openssl_config();
  Context made(SSL_CTX_new(TLS_server_method()));
  if (!made) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(made.get(), TLS1_2_VERSION);
  if (SSL_CTX_set_cipher_list(made.get(), kCiphers) != 1 ||
      SSL_CTX_set1_groups_list(made.get(), kGroups) != 1) {
    throw std::logic_error("OpenSSL knows none of the ciphers or groups of https");
  }
  // A cache would keep memory for clients that have gone, and renegotiation would let one client
  // ask for any number of handshakes over its connection.
  SSL_CTX_set_session_cache_mode(made.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(made.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // Replies are written piece by piece as the socket takes them, from a text that may move. Idle
  // connections release their buffers, which is about 34 KB each (SSL_CTX_set_mode(3)).
  SSL_CTX_set_mode(made.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                   SSL_MODE_RELEASE_BUFFERS);
  use_certificate(*made, {"--tls_cert", certificate_file_}, {"--tls_key", key_file_});
  return made;
}

void TlsIdentity::read_again() {
  watch_.read_where_due([this] { context_ = read(); });
}

SSL* TlsIdentity::session() try {
  const std::lock_guard lock(mutex_);
  read_again();
  return SSL_new(context_.get());
} catch (const std::bad_alloc&) {
  return nullptr;
}

std::unique_ptr<TlsAccepted> TlsAccepted::over(int fd, TlsIdentity& identity) {
  const BIO_METHOD* const method = socket_method();
  SSL* const ssl = method != nullptr ? identity.session() : nullptr;
  if (ssl == nullptr) return nullptr;
  std::unique_ptr<TlsAccepted> made(new TlsAccepted(ssl, fd));
  BIO* const bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, &made->fd_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  SSL_set_accept_state(ssl);
  return made;
}

TlsAccepted::~TlsAccepted() { SSL_free(ssl_); }

std::error_code TlsAccepted::failure(int result) {
  const int system = errno;
  const int kind = SSL_get_error(ssl_, result);
  waits_for_ = kind == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  has_failed_ = true;
  // Read before the queue is cleared. OpenSSL itself recognises the beginning of an HTTP request.
  is_plain_http_ = ERR_GET_REASON(ERR_peek_error()) == SSL_R_HTTP_REQUEST;
  ERR_clear_error();
  if (kind == SSL_ERROR_SYSCALL && system != 0) return {system, std::system_category()};
  return TlsError::kBroken;
}

std::size_t TlsAccepted::read_some(std::span<char> into, std::error_code& error) {
  error = has_failed_ ? make_error_code(TlsError::kBroken) : std::error_code();
  std::size_t taken = 0;
  if (error) return 0;
  ERR_clear_error();
  // Distinguishes a system error of this call from an end without close_notify, which sets none.
  errno = 0;
  const int result = SSL_read_ex(ssl_, into.data(), into.size(), &taken);
  if (result == 1) return taken;
  error = failure(result);
  return 0;
}

std::size_t TlsAccepted::write_some(std::string_view bytes, std::error_code& error) {
  error = has_failed_ ? make_error_code(TlsError::kBroken) : std::error_code();
  std::size_t written = 0;
  if (error) return 0;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written);
  if (result == 1) return written;
  error = failure(result);
  return 0;
}

bool TlsAccepted::is_shaken() const noexcept { return SSL_is_init_finished(ssl_) == 1; }

bool TlsAccepted::has_bytes() const noexcept { return SSL_has_pending(ssl_) == 1; }

void TlsAccepted::finish() noexcept {
  // close_notify after an error would make a truncation look like an orderly end.
  if (has_failed_ || !is_shaken()) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  ERR_clear_error();
}

}  // namespace disttf::net
