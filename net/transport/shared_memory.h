// Memory that one task writes and other tasks on the same machine read in place.
//
// The owner makes it (memfd_create: no name in any file system, gone with the last process that
// maps it), describes it in an offer, and hands its descriptor to the one that has been told
// (net/transport/handover.h). What is handed over must then prove to be the offered memory: sealed
// against shrinking (so reading it cannot fault), of the offered size, which is one that the reader
// has a use for. Whoever is handed it can read it and, where the kernel can forbid that (Linux
// 5.1), not write.
// Where any of this fails (another machine, network namespace or user) there is simply no view.
//
// Nothing here synchronises: the frames that tell the other side to look do, as system calls, and
// net/transport/header_slot.h where there are none.
// An object belongs to one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/transport/body_place.h"
#include "net/transport/descriptor.h"

namespace disttf::net {

struct SharedOffer {
  // Of the trainer's, where it is to be handed over: Rendezvous::name(). 0, with the token that the
  // ps has told: it has been.
  std::uint64_t rendezvous = 0;
  std::uint64_t token = 0;  // what the other one is to say who hands over its own
  std::uint64_t size = 0;   // usable bytes
  // Where in them, in bytes, headers are left without a frame (net/transport/header_slot.h): of the
  // trainer's its pushes over this connection, of the ps's the trainer's answers; of a primary's
  // its updates, of its backup's the acknowledgements. 0: nowhere.
  std::uint64_t slot = 0;
  // Where the word lies that says whether whoever offers sleeps. 0: nowhere, and it is sent frames.
  std::uint64_t sleep_word = 0;
  friend bool operator==(const SharedOffer&, const SharedOffer&) = default;
};

// Whether the first lies in the second, which is not empty.
[[nodiscard]] bool lies_in(std::span<const std::byte> part,
                           std::span<const std::byte> whole) noexcept;

// The body of SHARE and SHARED: the five fields in order, little-endian. The decoder takes bytes
// that nobody vouches for: another length is WireError::kBadBody, and `out` is then untouched.
// What the fields lead to is SharedView's to check.
inline constexpr std::size_t kSharedOfferBytes = 40;
[[nodiscard]] std::vector<std::byte> encode(const SharedOffer& offer);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, SharedOffer& out);

// The owner's side. Zeroed; begins on a page boundary.
class SharedMemory {
 public:
  // nullptr, and `error` set, where the system has no such memory, or not so much of it.
  [[nodiscard]] static std::unique_ptr<SharedMemory> create(std::size_t size,
                                                            std::error_code& error);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return bytes_; }
  // To be handed over.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_.number(); }

 private:
  SharedMemory(Descriptor descriptor, std::span<std::byte> bytes) noexcept;

  const Descriptor descriptor_;
  const std::span<std::byte> bytes_;
};

// The reader's side. The memory lives as long as the view, even if its owner does not.
class SharedView {
 public:
  // Of what has been handed over. nullptr, and `error` set, unless it is memory as it was offered,
  // of no more bytes than `most`: all of it is mapped, and its owner need not have taken the memory
  // for it.
  [[nodiscard]] static std::shared_ptr<const SharedView> map(Descriptor descriptor,
                                                             const SharedOffer& offer,
                                                             std::size_t most,
                                                             std::error_code& error);
  // The same of the pages alone that so many bytes from `offset` on lie on, of which there may be
  // as many as `most` bytes. bytes() begins with the first of these pages, and ends with the part.
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

// Pieces of views, mapped once more, end to end: memory of several owners that is read as one.
class JoinedView {
 public:
  // Their offsets are multiples of kPageBytes, and so are their sizes, but for the last one that
  // has any bytes.
  using Piece = BodyPlace;
  // nullptr, and `error` set, where the pieces are not as described, or hold no byte, or the system
  // does not map them.
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
