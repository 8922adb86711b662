// TLS 1.3 over a socket that does not block, between two tasks that share a secret.
//
// The secret seasons a fresh exchange of keys (an external PSK, psk_dhe_ke): who learns it later
// can read nothing of before. No certificates, no tickets, no early data, no older version, and
// no way back to without. The name of the key goes in clear: the secret's fingerprint, then what
// net/transport/secrets.h has as the pair's context; the HELLO that follows must fit it.
//
// One thread at a time. The socket stays its owner's, who waits for it where an error is
// would_block, and closes it after any other.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "net/transport/secrets.h"
#include "net/transport/tls_socket.h"
#include "net/wire/frame.h"

using SSL = struct ssl_st;

namespace disttf::net {

enum class TlsError {
  kOtherSecret = 1,  // the peer has another one than we
  kNotTls,           // the peer speaks, but without
  kNoSecret,         // the peer speaks TLS, and has no secret of this kind
  kCut,              // the connection ended without a farewell
  kBroken,           // a record that is none, or was changed on its way
};
[[nodiscard]] const std::error_category& tls_category() noexcept;
[[nodiscard]] std::error_code make_error_code(TlsError error) noexcept;

// What one who connects to `whom` makes of such an error: no later attempt would end otherwise.
// nullopt: one might.
[[nodiscard]] std::optional<Refusal> tls_refusal(std::error_code error, const std::string& whom,
                                                 Secrets& secrets);
// The sentence for those who speak without TLS to `whom`, who takes nobody so.
[[nodiscard]] std::string needs_secret(const std::string& whom);

class TlsStream {
 public:
  // `secrets` must outlive it. nullptr: out of memory.
  // Without `reads_ahead` it takes from the socket what belongs to the frame that is being read and
  // no more, so that poll() tells whether there is something to read: as long as the peer begins no
  // frame in the middle of a record, as write_some() does not.
  [[nodiscard]] static std::unique_ptr<TlsStream> connect(int fd, Secrets& secrets,
                                                          const Hello& hello,
                                                          bool reads_ahead = false);
  // Takes all that is there, as connect() does where it `reads_ahead`: see inbox().
  [[nodiscard]] static std::unique_ptr<TlsStream> accept(int fd, Secrets& secrets);
  ~TlsStream();
  TlsStream(const TlsStream&) = delete;
  TlsStream& operator=(const TlsStream&) = delete;

  // To be called again until it is not would_block.
  [[nodiscard]] std::error_code shake_hands();
  // REQUIRES: `into` is not more than what is to come of the frame.
  [[nodiscard]] std::size_t read_some(std::span<std::byte> into, std::error_code& error);
  // Of a frame, what follows after `sent` bytes of header and body: some records of it at once.
  // What it returns is in the kernel's hands. After would_block, again with the same bytes, or the
  // same and more.
  [[nodiscard]] std::size_t write_some(std::span<const std::byte> header,
                                       std::span<const std::byte> body, std::size_t sent,
                                       std::error_code& error);
  // What would_block waits for: POLLIN or POLLOUT.
  [[nodiscard]] short waits_for() const noexcept { return waits_for_; }
  // There is something to read that poll() does not know of.
  [[nodiscard]] bool has_bytes() const noexcept;
  // Says farewell if the socket takes it at once: the peer knows then that nothing was cut off.
  void finish() noexcept;

  // For whoever waits by reading: where bytes of the socket may be put, and how many have been.
  // REQUIRES: it reads ahead, would_block was just returned, and waits_for() is POLLIN.
  [[nodiscard]] std::span<std::byte> inbox() noexcept { return socket_.inbox(); }
  void received(std::size_t bytes) noexcept { socket_.received(bytes); }

  // After the handshake, of one who accepts: whether it was made by the key for this HELLO.
  [[nodiscard]] bool fits(const Hello& hello) const;
  // Of the peer's secret, where the handshake ended with kOtherSecret; of one who accepts.
  [[nodiscard]] const std::optional<Fingerprint>& other() const noexcept { return other_; }

 private:
  struct Callbacks;
  TlsStream(int fd, Secrets& secrets, bool reads_ahead)
      : secrets_(secrets), socket_(fd, reads_ahead) {}
  [[nodiscard]] bool make(bool accepts);
  [[nodiscard]] std::size_t write_record(std::span<const std::byte> header,
                                         std::span<const std::byte> body, std::size_t sent,
                                         std::error_code& error);
  // `error`, once what OpenSSL has written is with the kernel.
  [[nodiscard]] std::error_code flushed(std::error_code error) noexcept;
  [[nodiscard]] std::error_code failure(int result);
  [[nodiscard]] std::error_code why_not_shaken() noexcept;

  Secrets& secrets_;
  TlsSocket socket_;
  SSL* ssl_ = nullptr;
  short waits_for_ = 0;
  bool is_shaken_ = false;
  bool has_failed_ = false;
  std::size_t gathered_ = 0;          // bytes of a frame that the socket was too full for
  std::vector<std::byte> name_;       // of the key, in clear
  std::optional<Fingerprint> other_;  // not one of ours, or of a key that was not the same
};

}  // namespace disttf::net

template <>
struct std::is_error_code_enum<disttf::net::TlsError> : std::true_type {};
