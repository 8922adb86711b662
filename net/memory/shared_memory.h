// Memory that one task writes and other tasks on the same machine read in place.
//
// The owner creates it with memfd_create: it has no name in any file system and is freed with the
// last process that maps it. The owner describes it in an offer and hands its descriptor to the
// receiver of that offer (net/memory/handover.h). The receiver checks that the descriptor is the
// offered memory: sealed against shrinking, so that reading it cannot fault, and of the offered
// size, which must be within what the reader accepts. A receiver can read it and, where the kernel
// can forbid that (Linux 5.1), not write. If any of this fails (another machine, network namespace
// or user), there is no view.
//
// Nothing here synchronises. Frames do, which are system calls; without frames,
// net/memory/header_mailbox.h does.
// An object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/memory/bodies_in_place.h"
#include "net/waiting/descriptor.h"
#include "net/wire/body_fields.h"

namespace disttf::net {

// The body of SHARE and SHARED. encode() and decode(): net/wire/body_fields.h.
struct SharedOffer {
  // In a trainer's offer that asks for a handover: PeerListener::name(). 0, together with the ps's
  // token: the memory has been handed over.
  std::uint64_t listener_name = 0;
  std::uint64_t token = 0;  // to be sent along by the peer that hands its memory over
  std::uint64_t size = 0;   // usable bytes
  // Offset in bytes of the mailbox (net/memory/header_mailbox.h). In a trainer's memory for its
  // pushes over this connection, in a ps's for the trainer's answers, in a primary's for its
  // updates, in its backup's for the acknowledgements. 0: none.
  std::uint64_t slot = 0;
  // Offset of the parked flag of the task that offers. 0: none, so the task is sent frames.
  std::uint64_t parked_flag = 0;

  // SharedView checks the values.
  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("listener name", self.listener_name);
    fields.u64("token", self.token);
    fields.u64("bytes shared", self.size);
    fields.u64("slot", self.slot);
    fields.u64("parked flag", self.parked_flag);
  }
  friend bool operator==(const SharedOffer&, const SharedOffer&) = default;
};

// Whether `part` lies in `whole`, which is not empty.
[[nodiscard]] bool lies_in(std::span<const std::byte> part,
                           std::span<const std::byte> whole) noexcept;

// The owner's side. Zeroed; begins on a page boundary.
class SharedMemory {
 public:
  // Returns nullptr, and sets `error`, where the system has no such memory, or not that much of it.
  [[nodiscard]] static std::unique_ptr<SharedMemory> create(std::size_t size,
                                                            std::error_code& error);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  // The descriptor to hand over.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }

 private:
  SharedMemory(Descriptor descriptor, std::span<std::byte> bytes) noexcept;

  const Descriptor descriptor_;
  const std::span<std::byte> bytes_;
};

// The reader's side. The memory lives as long as the view, even if its owner exits.
class SharedView {
 public:
  // Maps all of the memory that was handed over. Returns nullptr, and sets `error`, unless it is
  // memory as offered, of at most `most` bytes. The limit protects this process: the owner need not
  // have allocated the memory for its size.
  [[nodiscard]] static std::shared_ptr<const SharedView> map(Descriptor descriptor,
                                                             const SharedOffer& offer,
                                                             std::size_t most,
                                                             std::error_code& error);
  // Maps only the pages that contain the `size` bytes from `offset` on, at most `most` bytes.
  // bytes() begins with the first of these pages and ends with the part.
  [[nodiscard]] static std::shared_ptr<const SharedView> map_part(
      Descriptor descriptor, const SharedOffer& offer, std::uint64_t offset, std::uint64_t size,
      std::size_t most, std::error_code& error);
  ~SharedView();
  SharedView(const SharedView&) = delete;
  SharedView& operator=(const SharedView&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  friend class JoinedView;
  SharedView(Descriptor descriptor, std::span<std::byte> mapped) noexcept;

  const Descriptor descriptor_;
  const std::span<std::byte> bytes_;
};

// Pieces of views, mapped again end to end: memory of several owners that is read as one.
class JoinedView {
 public:
  // The offsets are multiples of kPageBytes. So are the sizes, except that of the last piece that
  // has any bytes.
  using Piece = BodyLocation;
  // Returns nullptr, and sets `error`, where the pieces are not as described, or are empty
  // together, or the system does not map them.
  [[nodiscard]] static std::unique_ptr<const JoinedView> map(std::span<const Piece> pieces,
                                                             std::error_code& error);
  ~JoinedView();
  JoinedView(const JoinedView&) = delete;
  JoinedView& operator=(const JoinedView&) = delete;

  [[nodiscard]] std::span<const Piece> pieces() const noexcept { return pieces_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  JoinedView(std::span<const Piece> pieces, std::span<std::byte> reserved, std::size_t size);

  const std::vector<Piece> pieces_;
  const std::span<std::byte> reserved_;  // whole pages
  const std::span<const std::byte> bytes_;
};

}  // namespace disttf::net
