// Mailboxes, and the memory of one end that has them.
//
// Mailboxes: frame headers in memory that two tasks share (net/memory/shared_memory.h), instead
// of frames over the socket. The writer puts headers into its own memory, in a mailbox that the
// reader polls. It also sends a HEARTBEAT to wake the reader if the reader is parked; a parked flag
// in the reader's memory says so. A ps answers trainers this way, trainers push to and pull from a
// ps that is awake, and a primary sends updates to its backup, which acknowledges them.
//
// No lost wake: the writer puts its header, then reads the flag. The reader sets the flag, polls
// once more, then sleeps. All four operations are sequentially consistent, so at least one of the
// two sees what the other did. By the same rule a primary can tell that an update in its mailbox is
// handed off to its backup whatever happens next: see set_owner_token().
//
// One writer and one reader per mailbox; one writer per parked flag. All functions are wait-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/memory/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

// Layout. Zeroed at first, aligned to 64 bytes; integers are little-endian.
//
//  offset  size  field
//       0     8  the number of headers that have been written
//       8     8  in a backup's mailbox the owner token: the token of the agreement by which it
//                takes over the updates in the primary's mailbox, even after the primary has
//                ended; 0: it takes no more
//      16    48  unused
//      64   448  a ring of seven headers in wire format: number n, from 0 on, at n mod 7
//
// The writer makes sure that the reader has read a header before it writes the seventh one after
// it. (There is one answer at a time: the next request follows after the answer was read.)
inline constexpr std::size_t kHeadersInMailbox = 7;
inline constexpr std::size_t kHeaderMailboxBytes = (1 + kHeadersInMailbox) * kHeaderBytes;
using HeaderMailbox = std::span<std::byte, kHeaderMailboxBytes>;
using HeaderMailboxView = std::span<const std::byte, kHeaderMailboxBytes>;

// Appends the header and then raises the count.
void leave_header(HeaderMailbox slot, const FrameHeader& header) noexcept;
// Returns the number of headers that have been written (the first field).
[[nodiscard]] std::uint64_t header_count(HeaderMailboxView slot) noexcept;
// Reads the header of that number. The other process writes there, so the header is checked as one
// from a frame: see decode_header().
[[nodiscard]] std::error_code read_header(HeaderMailboxView slot, std::uint64_t number,
                                          FrameHeader& out) noexcept;

// Sets, and reads, the owner token (the second field). A writer that finds the token after it wrote
// its header can rely on the reader to take that header. A reader that takes no more sets the token
// to 0 and then polls once more: a header written after that poll has a writer that finds the 0.
void set_owner_token(HeaderMailbox slot, std::uint64_t token) noexcept;
[[nodiscard]] std::uint64_t owner_token_of(HeaderMailboxView slot) noexcept;

// Whether this header may go through a mailbox. A trainer's: a push whose body lies in shared
// memory, or a pull. A primary's: an update whose body lies in shared memory.
[[nodiscard]] constexpr bool is_left_request(const FrameHeader& header) noexcept {
  const bool is_in_place = (header.flags & kFlagInPlace) != 0;
  return header.kind == FrameKind::kPull ? !is_in_place && header.body_size == 0
                                         : is_in_place && (header.kind == FrameKind::kPushPull ||
                                                           header.kind == FrameKind::kPush ||
                                                           header.kind == FrameKind::kUpdate);
}

// Validates the offset that a peer has sent for a mailbox, or for a parked flag, within memory of
// `bytes` bytes. Returns the offset, or 0 if the object would not fit or is misaligned.
[[nodiscard]] std::size_t mailbox_within(std::size_t bytes, std::uint64_t offset) noexcept;
[[nodiscard]] std::size_t parked_flag_within(std::size_t bytes, std::uint64_t offset) noexcept;

// The size and alignment of the parked flag. 0: awake.
inline constexpr std::size_t kParkedFlagBytes = 4;
using ParkedFlag = std::span<std::byte, kParkedFlagBytes>;
using ParkedFlagView = std::span<const std::byte, kParkedFlagBytes>;

void set_parked(ParkedFlag word, bool parked) noexcept;
[[nodiscard]] bool is_parked(ParkedFlagView word) noexcept;

// How a frame whose body may lie in shared memory was sent, whole or in part.
enum class Left : std::uint8_t {
  kNot,            // the body lies elsewhere: send the frame as usual
  kBody,           // the body stays where it is; send the header, which says so now
  kHeader,         // the header is in the mailbox, too: send nothing
  kHeaderAndWake,  // the same, and the reader is parked: any frame wakes it
};

// The mailbox and the parked flag of the other end of a connection, which this end reads in a view
// of the other's memory. The view must outlive it.
class PeerMailbox {
 public:
  PeerMailbox() = default;  // there are none
  // Those of the offer that lie within offer.size. `memory` begins at offset `begin` of the other
  // end's memory and contains them. Headers that have been written until now are skipped.
  PeerMailbox(std::span<const std::byte> memory, const SharedOffer& offer,
              std::uint64_t begin = 0) noexcept;

  [[nodiscard]] bool has_mailbox() const noexcept { return mailbox_ != nullptr; }
  [[nodiscard]] bool has_flag() const noexcept { return flag_ != nullptr; }
  // From now on there is no mailbox.
  void forget_mailbox() noexcept { mailbox_ = nullptr; }

  // Whether there is a header that has not been read.
  [[nodiscard]] bool has_new() const noexcept {
    return has_mailbox() && header_count(mailbox()) != taken_;
  }
  // Reads the oldest of these; errors as read_header(). WireError::kUnexpected: more headers are
  // unread than the mailbox holds, so some are lost. REQUIRES: has_new().
  [[nodiscard]] std::error_code take(FrameHeader& out) noexcept;
  // Skips all headers that have been written until now.
  void skip() noexcept { taken_ = has_mailbox() ? header_count(mailbox()) : 0; }
  // The owner token in the mailbox; 0 without one.
  [[nodiscard]] std::uint64_t owner_token() const noexcept {
    return has_mailbox() ? owner_token_of(mailbox()) : 0;
  }

  // REQUIRES, for both: has_flag().
  [[nodiscard]] bool is_parked() const noexcept {
    return net::is_parked(ParkedFlagView(flag_, kParkedFlagBytes));
  }
  // Writes the header into this end's mailbox, then reads the other end's parked flag. Returns
  // kHeader or kHeaderAndWake.
  [[nodiscard]] Left leave(HeaderMailbox own, const FrameHeader& header) const noexcept;

 private:
  // REQUIRES: has_mailbox().
  [[nodiscard]] HeaderMailboxView mailbox() const noexcept {
    return HeaderMailboxView(mailbox_, kHeaderMailboxBytes);
  }

  const std::byte* mailbox_ = nullptr;
  const std::byte* flag_ = nullptr;
  std::uint64_t taken_ = 0;  // headers that have been read
};

// What one end of a connection has agreed with the other, as the connection's reader sees it: it
// handles the frames of the agreement, and has the headers and bodies that the other end leaves in
// shared memory. Not thread-safe.
class MailboxEnd {
 public:
  MailboxEnd() = default;
  MailboxEnd(const MailboxEnd&) = delete;
  MailboxEnd& operator=(const MailboxEnd&) = delete;
  virtual ~MailboxEnd() = default;

  // A frame to send.
  struct Reply {
    FrameHeader header;
    std::vector<std::byte> body;
  };
  // The kind of frame with which the other end negotiates.
  [[nodiscard]] virtual FrameKind negotiates_with() const noexcept = 0;
  // Whether a header of that kind is malformed.
  [[nodiscard]] virtual bool is_malformed(const FrameHeader& header) const noexcept = 0;
  // Handles a frame of that kind.
  [[nodiscard]] virtual std::error_code negotiate(const FrameHeader& header,
                                                  std::span<const std::byte> body,
                                                  std::optional<Reply>& reply) = 0;
  // Whether headers may come through the mailbox, now or after an agreement that is under way.
  [[nodiscard]] virtual bool may_have_mailbox() const noexcept = 0;

  // Whether a header lies in the other end's mailbox. It precedes anything that has arrived over
  // the connection since. (The end of a connection drops a trainer's requests and a backup's
  // acknowledgements; those of a primary are taken.)
  [[nodiscard]] virtual bool has_header() const noexcept = 0;
  // As PeerMailbox::take(), and WireError::kUnexpected for a kind of frame that may not be there.
  // REQUIRES: has_header().
  [[nodiscard]] virtual std::error_code take_header(FrameHeader& header) noexcept = 0;
  // Whether bodies may lie in the other end's memory. The body of a header with kFlagInPlace;
  // nullopt if the header's offset and size exceed the memory. REQUIRES: has_bodies().
  [[nodiscard]] virtual bool has_bodies() const noexcept { return false; }
  [[nodiscard]] virtual std::optional<BodyInPlace> find(const FrameHeader& /*header*/) const {
    return std::nullopt;
  }
  // A frame goes, or has come, over the connection; or a header through the mailbox.
  virtual void sends(const FrameHeader& /*header*/) noexcept {}
  virtual void received(const FrameHeader& /*header*/) noexcept {}
  // Clears the owner token: what the other end leaves from here on is not handed off. has_header()
  // still finds what it has left before.
  virtual void take_no_more() noexcept {}
};

// Shared memory of one end of a connection: an arena for bodies of frames, mailboxes for their
// headers, and the end's parked flag (net/memory/header_mailbox.h). The other end maps it and
// reads it by a PeerMailbox. Trainers, ps, primaries and backups all have such memory.
//
// Layout: the arena; from the next cache line on the mailboxes; behind them the parked flag, on a
// cache line of its own.
//
// Not thread-safe.
class MailboxMemory {
 public:
  struct Shape {
    std::size_t arena = 0;      // bytes
    std::size_t mailboxes = 0;  // number
    // The size of the memory, and the offsets in it of a mailbox and of the parked flag.
    [[nodiscard]] std::size_t size() const noexcept { return parked_flag() + kLineBytes; }
    [[nodiscard]] std::size_t mailbox(std::size_t number) const noexcept {
      return (arena + kLineBytes - 1) / kLineBytes * kLineBytes + number * kHeaderMailboxBytes;
    }
    [[nodiscard]] std::size_t parked_flag() const noexcept { return mailbox(mailboxes); }
    // What an offer says of the memory. nullopt: no mailbox.
    [[nodiscard]] SharedOffer offer(std::optional<std::size_t> number) const noexcept {
      return {.size = size(), .slot = number ? mailbox(*number) : 0, .parked_flag = parked_flag()};
    }
  };
  // Zeroed. Returns nullptr where the system has no memory to share.
  [[nodiscard]] static std::unique_ptr<MailboxMemory> create(const Shape& shape);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  // Begins on a page boundary.
  [[nodiscard]] std::span<std::byte> arena() const noexcept {
    return memory_->bytes().first(shape_.arena);
  }
  // REQUIRES: number < shape().mailboxes.
  [[nodiscard]] HeaderMailbox mailbox(std::size_t number) const noexcept {
    return HeaderMailbox(memory_->bytes().subspan(shape_.mailbox(number), kHeaderMailboxBytes));
  }
  void set_parked(bool parked) noexcept;
  // The descriptor to hand over.
  [[nodiscard]] int descriptor() const noexcept { return memory_->descriptor(); }

 private:
  MailboxMemory(std::unique_ptr<SharedMemory> memory, const Shape& shape) noexcept
      : memory_(std::move(memory)), shape_(shape) {}

  const std::unique_ptr<SharedMemory> memory_;
  const Shape shape_;
};

}  // namespace disttf::net
