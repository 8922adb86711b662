// The socket below a TLS stream, as OpenSSL sees it: it takes and gives records, which are at most
// 16 KB, and here many of them go in one system call.
//
// One thread at a time. The socket does not block, and stays its owner's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>

using BIO = struct bio_st;

namespace disttf::net {

// The most that a record holds, and what it has besides (RFC 8446, 5.1 and 5.2): a header, the
// content's type, and the cipher's tag.
inline constexpr std::size_t kRecordBytes = 16 * 1024;
inline constexpr std::size_t kRecordHeaderBytes = 5;
inline constexpr std::size_t kRecordOverhead = kRecordHeaderBytes + 1 + 16;

// Where the borders between records are in a stream of bytes.
class RecordBorders {
 public:
  // These come next.
  void pass(std::span<const std::byte> bytes) noexcept;
  // The next byte begins a record.
  [[nodiscard]] bool at_border() const noexcept { return have_ == 0; }

 private:
  std::size_t have_ = 0;  // of this record's header
  std::size_t left_ = 0;  // behind its header; it is said in the last two bytes of it
};

class TlsSocket {
 public:
  // With `reads_ahead` all that is there is taken, without it nothing beyond the frame that is
  // being read, so that poll() tells whether there is more: see expect().
  TlsSocket(int fd, bool reads_ahead);
  TlsSocket(const TlsSocket&) = delete;
  TlsSocket& operator=(const TlsSocket&) = delete;
  // How OpenSSL reaches it, who owns it from then on. nullptr: out of memory.
  [[nodiscard]] BIO* make_bio();

  // --- out: what OpenSSL writes is gathered until flush()

  [[nodiscard]] bool has_room() const noexcept;  // for one record more
  [[nodiscard]] bool has_unsent() const noexcept { return out_begin_ != out_end_; }
  // asio::error::would_block: the socket takes no more now.
  [[nodiscard]] std::error_code flush() noexcept;

  // --- in

  // At least as many bytes of contents are still to come of the frame that is being read, which
  // ends where a record ends; 0: nobody knows.
  void expect(std::size_t bytes) noexcept { expected_ = bytes; }
  // Taken, and not yet asked for.
  [[nodiscard]] bool has_bytes() const noexcept { return in_begin_ != in_end_; }
  // For whoever waits by reading: where bytes of the socket may be put, and how many have been.
  // REQUIRES: it reads ahead, and OpenSSL has just found nothing.
  [[nodiscard]] std::span<std::byte> inbox() noexcept;
  void received(std::size_t bytes) noexcept;

  [[nodiscard]] bool has_ended() const noexcept { return has_ended_; }
  [[nodiscard]] bool has_heard() const noexcept { return has_heard_; }  // any bytes
  // The first of them cannot be TLS.
  [[nodiscard]] bool is_plain() const noexcept { return is_plain_; }

 private:
  struct Callbacks;
  [[nodiscard]] std::size_t most_to_take(std::size_t asked) const noexcept;
  void hand_over(std::span<const std::byte> bytes) noexcept;

  const int fd_;
  const bool reads_ahead_;
  bool has_ended_ = false;
  bool has_heard_ = false;
  bool is_plain_ = false;
  std::size_t expected_ = 0;
  RecordBorders borders_;  // in what OpenSSL was handed
  // They need not be filled with zeros.
  std::unique_ptr<std::byte[]> inbox_;  // NOLINT(*-avoid-c-arrays)
  std::size_t in_begin_ = 0;
  std::size_t in_end_ = 0;
  std::unique_ptr<std::byte[]> outbox_;  // NOLINT(*-avoid-c-arrays)
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
};

// Whether these can be the first bytes of TLS. REQUIRES: they are not empty.
[[nodiscard]] bool may_be_tls(std::span<const std::byte> prefix) noexcept;
// Whether so far it is how a client begins to speak TLS of any version since 1.0, which
// kTlsBeginning bytes tell from noise.
inline constexpr std::size_t kTlsBeginning = 3;
[[nodiscard]] bool begins_tls(std::span<const std::byte> prefix) noexcept;

}  // namespace disttf::net
