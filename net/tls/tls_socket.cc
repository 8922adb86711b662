#include "net/tls/tls_socket.h"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <algorithm>
#include <asio/error.hpp>
#include <cassert>
#include <cerrno>
#include <cstring>

namespace disttf::net {
namespace {

constexpr std::byte kHandshakeRecord{22};
constexpr std::byte kAlertRecord{21};

// Whole records per system call, in each direction. With more of them, encryption would delay the
// moment at which the peer can begin to decrypt the first.
constexpr std::size_t kRecordsAtOnce = 2;
constexpr std::size_t kBoxBytes = kRecordsAtOnce * (kRecordBytes + kRecordOverhead);

}  // namespace

void RecordBorders::pass(std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    if (have_ < kRecordHeaderBytes) {
      // Shifts all five header bytes through 16 bits: after the fifth, exactly the length field is
      // left, which is the last two of them.
      left_ = ((left_ << 8U) | std::to_integer<std::size_t>(bytes.front())) & 0xFFFFU;
      bytes = bytes.subspan(1);
      ++have_;
    } else {
      const std::size_t part = std::min(left_, bytes.size());
      bytes = bytes.subspan(part);
      left_ -= part;
    }
    if (have_ == kRecordHeaderBytes && left_ == 0) have_ = 0;
  }
}

TlsSocket::TlsSocket(int fd, bool reads_ahead)
    : fd_(fd),
      reads_ahead_(reads_ahead),
      inbox_(std::make_unique_for_overwrite<std::byte[]>(kBoxBytes)),
      outbox_(std::make_unique_for_overwrite<std::byte[]>(kBoxBytes)) {}

// ------------------------------------------------------------------------------------------ out

bool TlsSocket::has_room() const noexcept {
  // OpenSSL writes a record as a whole, so there is room only if the largest one fits.
  return kBoxBytes - out_end_ >= kRecordBytes + kRecordOverhead;
}

std::error_code TlsSocket::flush() noexcept {
  while (out_begin_ != out_end_) {
    // MSG_NOSIGNAL: a peer that has gone is an error code here, not a signal.
    const ssize_t sent =
        ::send(fd_, outbox_.get() + out_begin_, out_end_ - out_begin_, MSG_NOSIGNAL);
    if (sent >= 0) {
      out_begin_ += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      return asio::error::would_block;
    } else if (errno != EINTR) {
      return {errno, std::system_category()};
    }
  }
  out_begin_ = 0;
  out_end_ = 0;
  return {};
}

// ------------------------------------------------------------------------------------------- in

// A frame ends where a record ends. So where a record begins, at least the expected bytes follow,
// in at least as many records as they need.
std::size_t TlsSocket::most_to_take(std::size_t asked) const noexcept {
  if (reads_ahead_) return kBoxBytes;
  if (!borders_.at_border()) return asked;
  const std::size_t records = (expected_ + kRecordBytes - 1) / kRecordBytes;
  return std::clamp(expected_ + records * kRecordOverhead, asked, kBoxBytes);
}

void TlsSocket::hand_over(std::span<const std::byte> bytes) noexcept {
  if (!has_received_) is_plain_ = !may_be_tls(bytes);
  has_received_ = true;
  borders_.pass(bytes);
}

std::span<std::byte> TlsSocket::inbox() noexcept {
  assert(reads_ahead_ && !has_bytes());
  return {inbox_.get(), kBoxBytes};
}

void TlsSocket::received(std::size_t bytes) noexcept {
  in_begin_ = 0;
  in_end_ = bytes;
}

// ------------------------------------------------------------------------------ what OpenSSL calls

struct TlsSocket::Callbacks {
  static TlsSocket& socket_of(BIO* bio) { return *static_cast<TlsSocket*>(BIO_get_data(bio)); }

  // All or nothing. A caller that flushes, and writes no more than there is room for, is never
  // refused.
  static int write(BIO* bio, const char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    TlsSocket& self = socket_of(bio);
    const auto count = static_cast<std::size_t>(size);
    if (count > kBoxBytes - self.out_end_) {
      BIO_set_retry_write(bio);
      return -1;
    }
    std::memcpy(self.outbox_.get() + self.out_end_, bytes, count);
    self.out_end_ += count;
    return size;
  }

  static int read(BIO* bio, char* bytes, int size) {
    BIO_clear_retry_flags(bio);
    TlsSocket& self = socket_of(bio);
    const auto asked = static_cast<std::size_t>(size);
    const std::size_t most = self.most_to_take(asked);
    std::size_t part = 0;
    // A read that fits into OpenSSL's buffer saves the copy through the inbox.
    if (!self.has_bytes() && most <= asked) {
      const int taken = take(self, bio, bytes, asked);
      if (taken <= 0) return taken;
      part = static_cast<std::size_t>(taken);
    } else {
      if (!self.has_bytes()) {
        const int taken = take(self, bio, self.inbox_.get(), most);
        if (taken <= 0) return taken;
        self.received(static_cast<std::size_t>(taken));
      }
      part = std::min(asked, self.in_end_ - self.in_begin_);
      std::memcpy(bytes, self.inbox_.get() + self.in_begin_, part);
      self.in_begin_ += part;
    }
    self.hand_over(std::as_bytes(std::span(bytes, part)));
    return static_cast<int>(part);
  }

  static int take(TlsSocket& self, BIO* bio, void* into, std::size_t size) {
    const ssize_t taken = ::recv(self.fd_, into, size, 0);
    if (taken < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
    // Recorded here, because OpenSSL does not tell the end of the stream apart from other failures.
    if (taken == 0) self.has_ended_ = true;
    return static_cast<int>(taken);
  }

  static long control(BIO* /*bio*/, int command, long /*number*/, void* /*pointer*/) {
    // OpenSSL flushes after each flight of the handshake and fails if that is refused. The bytes
    // leave when TlsStream flushes.
    return command == BIO_CTRL_FLUSH ? 1 : 0;
  }

  static const BIO_METHOD* method() {
    static const BIO_METHOD* const kMethod = [] {
      BIO_METHOD* const made = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "disttf");
      if (made == nullptr) return made;
      BIO_meth_set_write(made, &Callbacks::write);
      BIO_meth_set_read(made, &Callbacks::read);
      BIO_meth_set_ctrl(made, &Callbacks::control);
      return made;
    }();
    return kMethod;
  }
};

BIO* TlsSocket::make_bio() {
  const BIO_METHOD* const method = Callbacks::method();
  BIO* const bio = method != nullptr ? BIO_new(method) : nullptr;
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

// ---------------------------------------------------------------------------------- what TLS is

bool may_be_tls(std::span<const std::byte> prefix) noexcept {
  // A server that rejects the hello sends an alert as its first record.
  return prefix.front() == kHandshakeRecord || prefix.front() == kAlertRecord;
}

// A record's type and version; the version has been one of these since 1999.
bool begins_tls(std::span<const std::byte> prefix) noexcept {
  constexpr std::byte kMajor{3};
  constexpr std::byte kLastMinor{4};
  return prefix.front() == kHandshakeRecord && (prefix.size() < 2 || prefix[1] == kMajor) &&
         (prefix.size() < kTlsBeginning || prefix[2] <= kLastMinor);
}

}  // namespace disttf::net
