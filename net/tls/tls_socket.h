// The socket below a TLS stream, as OpenSSL's BIO. OpenSSL transfers records of at most 16 KB; this
// class transfers many of them in one system call.
//
// Use by one thread at a time. The socket is non-blocking and stays its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

using BIO = struct bio_st;

namespace disttf::net {

// The largest content of a record, and its overhead (RFC 8446, 5.1 and 5.2): a header, the content
// type, and the cipher's tag.
inline constexpr std::size_t kRecordBytes = 16 * 1024;
inline constexpr std::size_t kRecordHeaderBytes = 5;
inline constexpr std::size_t kRecordOverhead = kRecordHeaderBytes + 1 + 16;

// Finds the borders between records in a stream of bytes.
class RecordBorders {
 public:
  // Advances over these bytes.
  void pass(std::span<const std::byte> bytes) noexcept;
  // Whether the next byte begins a record.
  [[nodiscard]] bool at_border() const noexcept { return have_ == 0; }

 private:
  std::size_t have_ = 0;  // bytes of this record's header seen so far
  std::size_t left_ = 0;  // bytes after the header; its last two bytes have the length
};

class TlsSocket {
 public:
  // With `reads_ahead` it takes all available bytes. Without, it takes nothing beyond the frame
  // that is being read, so that poll() reports further bytes: see expect().
  TlsSocket(int fd, bool reads_ahead);
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;
  // Makes the BIO for OpenSSL, which owns it from then on. nullptr: out of memory.
  [[nodiscard]] BIO* make_bio();

  // --- out: what OpenSSL writes is gathered until flush()

  [[nodiscard]] bool has_room() const noexcept;  // for one more record
  [[nodiscard]] bool has_unsent() const noexcept { return out_begin_ != out_end_; }
  // asio::error::would_block: the socket takes no more now.
  [[nodiscard]] std::error_code flush() noexcept;

  // --- in

  // At least that many bytes of content are still to come of the current frame, which ends where a
  // record ends; 0: unknown.
  void expect(std::size_t bytes) noexcept { expected_ = bytes; }
  // Whether there are bytes that OpenSSL has not read yet.
  [[nodiscard]] bool has_bytes() const noexcept { return in_begin_ != in_end_; }
  // For a caller that waits by reading: inbox() is where bytes of the socket may be put, and
  // received() tells how many were. REQUIRES: reads_ahead, and OpenSSL has just found nothing.
  [[nodiscard]] std::span<std::byte> inbox() noexcept;
  void received(std::size_t bytes) noexcept;

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] bool has_received() const noexcept { return has_received_; }  // any bytes
  // Whether the first byte cannot be TLS.
  [[nodiscard]] bool is_plain() const noexcept { return is_plain_; }

 private:
  struct Callbacks;
  [[nodiscard]] std::size_t most_to_take(std::size_t asked) const noexcept;
  void hand_over(std::span<const std::byte> bytes) noexcept;

  const int fd_;
  const bool reads_ahead_;
  bool has_ended_ = false;
  bool has_received_ = false;
  bool is_plain_ = false;
  std::size_t expected_ = 0;
  RecordBorders borders_;  // in what OpenSSL has read
  // Not zeroed, to save the time.
  std::unique_ptr<std::byte[]> inbox_;  // NOLINT(*-avoid-c-arrays)
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::unique_ptr<std::byte[]> outbox_;  // NOLINT(*-avoid-c-arrays)
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

// Whether these can be the first bytes of TLS. REQUIRES: not empty.
[[nodiscard]] bool may_be_tls(std::span<const std::byte> prefix) noexcept;
// Whether `prefix` is how a client begins TLS of any version since 1.0. kTlsBeginning bytes are
// enough to tell that from other data.
inline constexpr std::size_t kTlsBeginning = 3;
[[nodiscard]] bool begins_tls(std::span<const std::byte> prefix) noexcept;

}  // namespace disttf::net
