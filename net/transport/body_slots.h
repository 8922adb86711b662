// Memory in which one end of a connection leaves bodies of frames for the other one, on its
// machine, instead of sending them: copies, each in a slot of its own until the other end says that
// it is done with that frame; or, where there are bodies with the whole state, that it has the next
// one of these. A ps has such memory for the updates that it tells its backup.
//
// The two agree as a trainer and a ps do (net/transport/gradient_memory.h): who offers is in the
// trainer's place. The headers of such frames, too, are left there, and their acknowledgements in
// the other end's memory (net/transport/header_slot.h), where neither overtakes a frame that the
// other end may not have read; an end that sleeps is rung.
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

#include "net/transport/handover.h"
#include "net/transport/header_slot.h"
#include "net/transport/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class BodySlots {
 public:
  struct Shape {
    std::size_t bytes = 0;  // of a body
    std::size_t count = 1;  // of slots
    // Of a body that has all in it that those before it were needed for; 0: there are none. Two
    // more slots are theirs. Once one is acknowledged, those before it are free, and only then.
    std::size_t whole_bytes = 0;
  };
  // The memory is taken when the other end has come for it: mostly it is on another machine.
  // nullptr where the system has no way to hand memory over.
  [[nodiscard]] static std::unique_ptr<BodySlots> create(const Shape& shape);
  // Of all of it: the most that the other end has a use for.
  [[nodiscard]] static std::size_t largest(const Shape& shape) noexcept;

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
  // been written in one that was kept; the header says where. kNot: they have not agreed, or no
  // slot is free, or none is that large.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> head,
                           std::span<const std::byte> rest);
  // Whether the other end takes all that has been left with its header until now, and will though
  // this process ends, or the connection: then that need not be acknowledged to be there. False
  // also where there is no slot for another body yet, which would have to be sent: who waits for
  // the acknowledgement finds one.
  [[nodiscard]] bool is_given() noexcept {
    return view_ && taker_ != 0 && taker_of(acks()) == taker_ &&
           find_place(shape_.bytes) != nullptr;
  }
  // A frame goes over the connection. No header is left before the other end has acknowledged it,
  // if it is an UPDATE, or else an UPDATE behind it.
  void sends(const FrameHeader& header) noexcept;
  // The other end acknowledges the frames of this request_id, and of lower ones.
  void done(std::uint64_t request_id) noexcept;

  // Whether an acknowledgement lies in the other end's memory. It came before whatever came over
  // the connection since.
  [[nodiscard]] bool has_ack() const noexcept { return view_ && heard_.sees(acks()); }
  // As HeaderSlotReader::take(), and WireError::kUnexpected of another frame. REQUIRES: has_ack().
  [[nodiscard]] std::error_code take_ack(FrameHeader& header) noexcept;
  // Whether this end sleeps: then it is sent a frame behind an acknowledgement that was left. One
  // that is awake looks for these, and does so once more between set_asleep(true) and its sleep.
  void set_asleep(bool asleep) noexcept;

 private:
  enum class State : std::uint8_t { kOffered, kHandedOver, kAgreed, kDeclined };
  struct Slot {
    bool is_taken = false;
    std::uint64_t request_id = 0;  // of the frame whose body lies there
  };

  // Where the word lies that says whether this end sleeps, and the slot of headers behind it.
  [[nodiscard]] static std::size_t sleep_word_of(const Shape& shape) noexcept;
  [[nodiscard]] static std::size_t headers_of(const Shape& shape) noexcept;
  // The other end's memory is as it says: this one reads acknowledgements there, if that one has a
  // slot for them.
  [[nodiscard]] bool adopt(Descriptor memory, const SharedOffer& theirs);
  // Nothing is shared any more.
  void forget() noexcept;
  // REQUIRES: there are some.
  [[nodiscard]] HeaderSlotView acks() const noexcept {
    return HeaderSlotView(view_->bytes().subspan(acks_at_, kHeaderSlotBytes));
  }
  [[nodiscard]] SleepWordView their_sleep_word() const noexcept {
    return SleepWordView(view_->bytes().subspan(their_sleep_word_, kSleepWordBytes));
  }
  [[nodiscard]] static std::size_t count_of(const Shape& shape) noexcept;  // of slots
  [[nodiscard]] static std::size_t place_of(const Shape& shape, std::size_t slot) noexcept;
  [[nodiscard]] std::size_t place_of(const Slot& slot) const noexcept {
    return place_of(shape_, static_cast<std::size_t>(&slot - slots_.data()));
  }
  [[nodiscard]] bool is_whole(const Slot& slot) const noexcept {
    return static_cast<std::size_t>(&slot - slots_.data()) >= shape_.count;
  }
  // The slot has room for the header of the body that has just been left, too.
  [[nodiscard]] bool may_leave_header() const noexcept;
  // nullptr: nowhere.
  [[nodiscard]] Slot* find_place(std::size_t bytes) noexcept;
  [[nodiscard]] Slot* find_kept(std::span<const std::byte> rest) noexcept;
  BodySlots(std::unique_ptr<Rendezvous> rendezvous, std::uint64_t token, const Shape& shape);

  std::unique_ptr<Rendezvous> rendezvous_;  // until the first SHARED
  std::unique_ptr<SharedMemory> memory_;    // once it is to be handed over
  const std::uint64_t token_;
  const Shape shape_;
  std::vector<Slot> slots_;
  std::uint64_t acknowledged_ = 0;  // the highest request_id
  State state_ = State::kOffered;
  // The pages of the other end's where these lie, once it has handed it over.
  std::shared_ptr<const SharedView> view_;
  // Where in them, in bytes. REQUIRES: there is a view; without it acknowledgements are frames, and
  // this end sends its headers.
  std::size_t acks_at_ = 0;
  std::size_t their_sleep_word_ = 0;
  HeaderSlotReader heard_;   // of the acknowledgements
  std::uint64_t taker_ = 0;  // the other end's token of this agreement
  // The frame by whose acknowledgement all that were sent have been read; nullopt: they have been.
  std::optional<std::uint64_t> unread_;
};

}  // namespace disttf::net
