// Memory in which one end of a connection leaves bodies of frames for the other one, on its
// machine, instead of sending them: copies, each in a slot of its own until the other end says that
// it is done with that frame. A ps has such memory for the updates that it tells its backup.
//
// The two agree as a trainer and a ps do (net/transport/gradient_memory.h): who offers is in the
// trainer's place, and has no use for the memory that it is offered in return.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/transport/handover.h"
#include "net/transport/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class BodySlots {
 public:
  // `count` slots for so many bytes each, which are taken when the other end has come for them:
  // mostly it is on another machine. nullptr where the system has no way to hand memory over.
  [[nodiscard]] static std::unique_ptr<BodySlots> create(std::size_t bytes, std::size_t count);
  // Of all of it: the most that the other end has a use for.
  [[nodiscard]] static std::size_t largest(std::size_t bytes, std::size_t count) noexcept {
    return count * whole_pages(bytes);
  }

  // The body of the first SHARE.
  [[nodiscard]] SharedOffer offer() const noexcept;
  // The body of a SHARED has come. Returns that of the second SHARE, if one is to be sent now.
  // After a SHARED that declines, or that is not to be believed, nothing is ever left.
  [[nodiscard]] std::optional<SharedOffer> answered(std::span<const std::byte> body);
  [[nodiscard]] bool has_agreed() const noexcept { return state_ == State::kAgreed; }

  // A free slot, kept for a body of which so many bytes lie behind a head of so many: where these
  // lie there. They are to be written, and left, or the connection closed. Nothing: as leave().
  [[nodiscard]] std::span<std::byte> keep(std::size_t head, std::size_t rest);
  // Copies a body, `head` and behind it `rest`, into a free slot, or only `head`, where `rest` has
  // been written in one that was kept; the header says where, and is to be sent alone. False: they
  // have not agreed, or no slot is free, or none is that large.
  [[nodiscard]] bool leave(FrameHeader& header, std::span<const std::byte> head,
                           std::span<const std::byte> rest);
  // The other end is done with the frames of this request_id, and of lower ones.
  void done(std::uint64_t request_id) noexcept;

 private:
  enum class State : std::uint8_t { kOffered, kHandedOver, kAgreed, kDeclined };
  struct Slot {
    bool is_taken = false;
    std::uint64_t request_id = 0;  // of the frame whose body lies there
  };

  [[nodiscard]] std::size_t place_of(const Slot& slot) const noexcept;
  // nullptr: nowhere.
  [[nodiscard]] Slot* find_place(std::size_t bytes) noexcept;
  [[nodiscard]] Slot* find_kept(std::span<const std::byte> rest) noexcept;
  BodySlots(std::unique_ptr<Rendezvous> rendezvous, std::uint64_t token, std::size_t bytes,
            std::size_t count);

  std::unique_ptr<Rendezvous> rendezvous_;  // until the first SHARED
  std::unique_ptr<SharedMemory> memory_;    // once it is to be handed over
  const std::uint64_t token_;
  const std::size_t bytes_;  // of a slot
  std::vector<Slot> slots_;
  State state_ = State::kOffered;
};

}  // namespace disttf::net
