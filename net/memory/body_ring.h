// A slot ring: shared memory in which one end of a connection leaves bodies of frames for the other
// end on the same machine, instead of sending them. Each body is copied into a slot of its own and
// stays there until the other end acknowledges its frame; or, where some bodies contain the whole
// state, until the other end has the next one of these. A ps uses it for the updates that it sends
// to its backup.
//
// The two ends agree as a trainer and a ps do (net/tcp/gradient_memory.h); the end that
// offers the memory takes the trainer's part. The headers of such frames go through a mailbox, too,
// and so do their acknowledgements, in the other end's memory (net/memory/header_mailbox.h).
// Neither overtakes a frame that the other end may not have read. A parked end is woken.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "net/memory/handover.h"
#include "net/memory/header_mailbox.h"
#include "net/memory/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class BodyRing final : public MailboxEnd {
 public:
  struct Shape {
    std::size_t bytes = 0;  // of a body
    std::size_t count = 1;  // of slots
    // Size of a body with the whole state, which makes all earlier bodies unnecessary; 0: there are
    // none. Two more slots are for these. Acknowledging one frees the slots before it, and nothing
    // else does.
    std::size_t whole_bytes = 0;
  };
  // The memory is allocated only when the other end has connected for it, because mostly that end
  // is on another machine. Returns nullptr where the system has no way to hand memory over.
  [[nodiscard]] static std::unique_ptr<BodyRing> create(const Shape& shape);
  // The size of the whole memory: the most that the other end may map.
  [[nodiscard]] static std::size_t largest(const Shape& shape) noexcept;

  // Returns the body of the first SHARE.
  [[nodiscard]] SharedOffer offer() const noexcept;
  // Processes the body of a SHARED. Returns the body of the second SHARE if one is to be sent now.
  // After a SHARED that declines or is invalid, all frames are sent over the connection.
  [[nodiscard]] std::optional<SharedOffer> answered(std::span<const std::byte> body);
  [[nodiscard]] bool has_agreed() const noexcept { return state_ == State::kAgreed; }

  // Reserves a free slot for a body of `rest` bytes behind a head of `head` bytes, and returns
  // where the `rest` bytes lie. The caller writes them and calls leave(), or closes the connection.
  // Empty: as leave() returning kNot.
  [[nodiscard]] std::span<std::byte> keep(std::size_t head, std::size_t rest);
  // Copies a body, `head` and behind it `rest`, into a free slot, and puts the slot's offset into
  // the header. Copies only `head` where `rest` was written into a slot that keep() returned. kNot:
  // the ends have not agreed, or no slot is free, or none is large enough.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> head,
                           std::span<const std::byte> rest);
  // Returns true if all updates left so far with their headers are handed off: the other end takes
  // them even if this process ends or the connection breaks, so they need not be acknowledged to be
  // safe. Also false while no slot is free for another body, which would have to be sent; waiting
  // for an acknowledgement frees one.
  [[nodiscard]] bool is_handed_off() noexcept {
    return owner_token_ != 0 && peer_.owner_token() == owner_token_ &&
           find_place(shape_.bytes) != nullptr;
  }
  // The other end acknowledges the frames up to this request_id.
  void done(std::uint64_t request_id) noexcept;

  // Sets this end's parked flag. A parked end is sent a frame after an acknowledgement in the
  // mailbox. An awake end polls for acknowledgements, and polls once more between set_parked(true)
  // and its sleep.
  void set_parked(bool parked) noexcept;

  // The other end answers offers, and acknowledges.
  [[nodiscard]] FrameKind negotiates_with() const noexcept override { return FrameKind::kShared; }
  [[nodiscard]] bool is_malformed(const FrameHeader& header) const noexcept override;
  [[nodiscard]] std::error_code negotiate(const FrameHeader& header,
                                          std::span<const std::byte> body,
                                          std::optional<Reply>& reply) override;
  [[nodiscard]] bool may_have_mailbox() const noexcept override { return true; }
  [[nodiscard]] bool has_header() const noexcept override { return peer_.has_new(); }
  [[nodiscard]] std::error_code take_header(FrameHeader& header) noexcept override;
  // No header goes through the mailbox until the other end has acknowledged this frame if it is an
  // UPDATE, or else a later UPDATE.
  void sends(const FrameHeader& header) noexcept override;
  void received(const FrameHeader& header) noexcept override;

 private:
  enum class State : std::uint8_t { kOffered, kHandedOver, kAgreed, kDeclined };
  struct Slot {
    bool is_taken = false;
    std::uint64_t request_id = 0;  // of the frame whose body is in the slot
  };

  [[nodiscard]] static MailboxMemory::Shape layout_of(const Shape& shape) noexcept;
  // Maps the other end's memory, where this end reads acknowledgements if the other end has a
  // mailbox for them. False: what the other end says of its memory is wrong.
  [[nodiscard]] bool adopt(Descriptor memory, const SharedOffer& theirs);
  // Unmaps both memories.
  void forget() noexcept;
  [[nodiscard]] static std::size_t count_of(const Shape& shape) noexcept;  // of slots
  [[nodiscard]] static std::size_t place_of(const Shape& shape, std::size_t slot) noexcept;
  [[nodiscard]] std::size_t place_of(const Slot& slot) const noexcept {
    return place_of(shape_, static_cast<std::size_t>(&slot - slots_.data()));
  }
  [[nodiscard]] bool is_whole(const Slot& slot) const noexcept {
    return static_cast<std::size_t>(&slot - slots_.data()) >= shape_.count;
  }
  // Whether the mailbox has room for the header of the body that was just left.
  [[nodiscard]] bool may_leave_header() const noexcept;
  // Returns a free slot for that many bytes, or nullptr.
  [[nodiscard]] Slot* find_place(std::size_t bytes) noexcept;
  [[nodiscard]] Slot* find_kept(std::span<const std::byte> rest) noexcept;
  BodyRing(std::unique_ptr<PeerListener> peer_listener, std::uint64_t token, const Shape& shape);

  std::unique_ptr<PeerListener> peer_listener_;  // until the first SHARED
  std::unique_ptr<MailboxMemory> memory_;        // once it is to be handed over
  const std::uint64_t token_;
  const Shape shape_;
  std::vector<Slot> slots_;
  std::uint64_t acknowledged_ = 0;  // the highest request_id
  State state_ = State::kOffered;
  // The mapped pages of the other end's memory with its mailbox and parked flag, once it has handed
  // them over.
  std::shared_ptr<const SharedView> view_;
  // In the view. Without one, acknowledgements are frames, and this end sends its headers.
  PeerMailbox peer_;
  std::uint64_t owner_token_ = 0;  // the other end's owner token of this agreement
  // The frame whose acknowledgement shows that all sent frames have been read; nullopt: they have
  // been.
  std::optional<std::uint64_t> unread_;
};

}  // namespace disttf::net
