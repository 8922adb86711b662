#include "net/tls/tls_stream.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <cerrno>

namespace disttf::net {

bool TlsStream::make(bool accepts) {
  ssl_ = proof_->make();
  BIO* const bio = ssl_ != nullptr ? tls_socket_.make_bio() : nullptr;
  if (bio == nullptr) return false;
  // One BIO for both directions belongs to SSL, which frees it.
  SSL_set_bio(ssl_, bio, bio);
  if (accepts) {
    SSL_set_accept_state(ssl_);
  } else {
    SSL_set_connect_state(ssl_);
  }
  return true;
}

std::unique_ptr<TlsStream> TlsStream::connect(asio::ip::tcp::socket& socket,
                                              Credentials& credentials, const Hello& hello,
                                              bool reads_ahead) {
  std::unique_ptr<TlsStream> stream(new TlsStream(socket, credentials.to_say(hello), reads_ahead));
  return stream->make(false) ? std::move(stream) : nullptr;
}

std::unique_ptr<TlsStream> TlsStream::accept(asio::ip::tcp::socket& socket,
                                             Credentials& credentials) {
  std::unique_ptr<TlsStream> stream(
      new TlsStream(socket, credentials.to_accept(), true /* reads ahead */));
  return stream->make(true) ? std::move(stream) : nullptr;
}

TlsStream::~TlsStream() { SSL_free(ssl_); }

std::error_code TlsStream::shake_hands() {
  // OpenSSL's error queue belongs to the thread; an old entry would be taken for this call's error.
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  const std::error_code error = flushed(result != 1 ? failure(result) : std::error_code{});
  if (error) return error;
  // The chain is valid; now the identity must be the expected one.
  if (const std::error_code objection = proof_->check(*ssl_)) {
    has_failed_ = true;
    return objection;
  }
  is_shaken_ = true;
  return {};
}

std::error_code TlsStream::flushed(std::error_code error) noexcept {
  if (!tls_socket_.has_unsent()) return error;
  // Output that the socket has not accepted must be sent before the peer can go on, so a wait for
  // it takes precedence.
  const std::error_code unsent = tls_socket_.flush();
  if (unsent == asio::error::would_block) waits_for_ = POLLOUT;
  const bool may_go_on = !error || error == asio::error::would_block;
  return unsent && may_go_on ? unsent : error;
}

std::error_code TlsStream::failure(int result) {
  // errno is read first, because SSL_get_error() may change it.
  const int system = errno;
  const int kind = SSL_get_error(ssl_, result);
  waits_for_ = kind == SSL_ERROR_WANT_WRITE ? POLLOUT : POLLIN;
  if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE) return asio::error::would_block;
  if (kind == SSL_ERROR_ZERO_RETURN) return asio::error::eof;
  has_failed_ = true;
  if (tls_socket_.has_ended()) {
    // An end in the middle of a conversation may come from an attacker who wants to truncate it.
    return is_shaken_ || tls_socket_.has_received() ? TlsError::kCut
                                                    : make_error_code(asio::error::eof);
  }
  if (kind == SSL_ERROR_SYSCALL) return {system, std::system_category()};
  const std::error_code why = why_failed();
  ERR_clear_error();
  return why;
}

std::error_code TlsStream::why_failed() {
  const int reason = ERR_GET_REASON(ERR_peek_error());
  if (is_shaken_) return proof_->why_ended(reason);
  return tls_socket_.is_plain() ? TlsError::kNotTls : proof_->why_not_shaken(*ssl_, reason);
}

std::size_t TlsStream::read_now(std::span<std::byte> into, std::error_code& error) {
  error = {};
  std::size_t taken = 0;
  if (into.empty()) return 0;
  // Without reading ahead, this limits the socket layer to the bytes of this frame.
  tls_socket_.expect(into.size());
  ERR_clear_error();
  const int result = SSL_read_ex(ssl_, into.data(), into.size(), &taken);
  if (result != 1) error = failure(result);
  // Outside of this call the rest of a frame is unknown, so nothing may be read ahead.
  tls_socket_.expect(0);
  // Reading may also produce output, such as an alert. A reader does not wait for that.
  if (tls_socket_.has_unsent()) static_cast<void>(tls_socket_.flush());
  return taken;
}

// Puts the header and the beginning of the body into one record: a separate record for the header
// would cost another 22 bytes and another encryption.
std::size_t TlsStream::write_record(const UnsentFrame& frame, std::error_code& error) {
  std::array<std::byte, kRecordBytes> first;
  std::span<const std::byte> next;
  if (frame.sent < frame.header.size()) {
    const auto head = frame.header.subspan(frame.sent);
    const auto start = frame.body.first(std::min(frame.body.size(), first.size() - head.size()));
    std::copy(start.begin(), start.end(), std::copy(head.begin(), head.end(), first.begin()));
    next = std::span(first).first(head.size() + start.size());
  } else {
    next = frame.body.subspan(frame.sent - frame.header.size());
  }
  std::size_t written = 0;
  ERR_clear_error();
  const int result = SSL_write_ex(ssl_, next.data(), next.size(), &written);
  if (result != 1) error = failure(result);
  return written;
}

std::size_t TlsStream::write_now(const UnsentFrame& frame, std::error_code& error) {
  error = {};
  const std::size_t whole = frame.header.size() + frame.body.size();
  // What the socket had no room for goes first, and alone.
  const bool is_again = gathered_ != 0;
  // Gathers several records before it writes, so that a large frame needs fewer system calls.
  while (!is_again && frame.sent + gathered_ < whole && tls_socket_.has_room()) {
    gathered_ += write_record({frame.header, frame.body, frame.sent + gathered_}, error);
    if (error) return 0;
  }
  error = flushed({});
  return error ? 0 : std::exchange(gathered_, 0);
}

bool TlsStream::has_bytes() const noexcept {
  return SSL_has_pending(ssl_) == 1 || tls_socket_.has_bytes();
}

void TlsStream::finish() noexcept {
  // close_notify must not follow an error: the peer would take the truncated conversation for
  // complete.
  if (!is_shaken_ || has_failed_) return;
  ERR_clear_error();
  SSL_shutdown(ssl_);
  static_cast<void>(tls_socket_.flush());
  ERR_clear_error();
}

}  // namespace disttf::net
