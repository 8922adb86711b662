// Headers without a frame, between tasks that share memory (net/transport/shared_memory.h): one
// leaves headers in its own memory, in a slot that the other one looks at, and rings, with a
// HEARTBEAT, only where that one sleeps. A word in that one's memory says whether it does. So a ps
// answers trainers, and trainers push to a ps that is awake, and pull; and so a primary tells its
// backup of updates, which that one acknowledges.
//
// Who leaves a header does so, then reads the word. Who waits for one sets the word, then looks
// once more, then sleeps. All four are sequentially consistent, so at least one of the two sees
// what the other did, and no header waits for a sleeper who was not rung. By the same rule a
// primary knows that an update which it has left is its backup's, whatever comes: see set_taker().
//
// One writer and one reader for each slot; one writer for each word. All functions are wait-free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

#include "net/wire/frame.h"

namespace disttf::net {

// Zeroed at first, on a boundary of 64 bytes; integers are little-endian.
//
//   offset  size  field
//        0     8  the number of headers that have been left
//        8     8  of a backup's: the token of the agreement by which it takes the updates that the
//                 primary has left, also once that one is gone; 0: nothing any more
//       16    48  unused
//       64   448  seven headers, as they would cross the socket: number n, from 0 on, at n mod 7
//
// The writer sees to it that the reader has taken a header before the seventh behind it is left.
// (Of answers there is one at a time: nothing more is asked before it has been taken.)
inline constexpr std::size_t kHeadersInSlot = 7;
inline constexpr std::size_t kHeaderSlotBytes = (1 + kHeadersInSlot) * kHeaderBytes;
using HeaderSlot = std::span<std::byte, kHeaderSlotBytes>;
using HeaderSlotView = std::span<const std::byte, kHeaderSlotBytes>;

void leave_header(HeaderSlot slot, const FrameHeader& header) noexcept;
// The first field.
[[nodiscard]] std::uint64_t header_count(HeaderSlotView slot) noexcept;
// The header of that number. Somebody else writes there: it is checked as a frame's is, see
// decode_header().
[[nodiscard]] std::error_code read_header(HeaderSlotView slot, std::uint64_t number,
                                          FrameHeader& out) noexcept;

// The second field. Who leaves a header and then finds the token there knows that it will be taken.
// Who is to take no more sets it to 0, then looks once more: what is left after that has been left
// by one who finds the 0.
void set_taker(HeaderSlot slot, std::uint64_t token) noexcept;
[[nodiscard]] std::uint64_t taker_of(HeaderSlotView slot) noexcept;

// What a reader remembers of a slot.
class HeaderSlotReader {
 public:
  // What has been left until now is none of this reader's.
  void skip(HeaderSlotView slot) noexcept { taken_ = header_count(slot); }
  // Whether there is one that it has not taken.
  [[nodiscard]] bool sees(HeaderSlotView slot) const noexcept {
    return header_count(slot) != taken_;
  }
  // The oldest of these; as read_header(). WireError::kUnexpected: there are more than a slot has,
  // so that some are lost. REQUIRES: sees().
  [[nodiscard]] std::error_code take(HeaderSlotView slot, FrameHeader& out) noexcept;

 private:
  std::uint64_t taken_ = 0;
};

// Whether a trainer may leave that: a push whose body lies in memory, or a pull; or a primary: an
// update whose body lies there.
[[nodiscard]] constexpr bool is_left_request(const FrameHeader& header) noexcept {
  const bool is_in_place = (header.flags & kFlagInPlace) != 0;
  return header.kind == FrameKind::kPull ? !is_in_place && header.body_size == 0
                                         : is_in_place && (header.kind == FrameKind::kPushPull ||
                                                           header.kind == FrameKind::kPush ||
                                                           header.kind == FrameKind::kUpdate);
}

// Where a slot, or a sleep word, lies in memory of so many bytes, if somebody says that it lies
// there: nobody vouches for that. 0: nowhere, as it would not be whole, or on its boundary.
[[nodiscard]] std::size_t slot_within(std::size_t bytes, std::uint64_t place) noexcept;
[[nodiscard]] std::size_t sleep_word_within(std::size_t bytes, std::uint64_t place) noexcept;

// On a boundary of as many bytes. 0: awake.
inline constexpr std::size_t kSleepWordBytes = 4;
using SleepWord = std::span<std::byte, kSleepWordBytes>;
using SleepWordView = std::span<const std::byte, kSleepWordBytes>;

void set_asleep(SleepWord word, bool asleep) noexcept;
[[nodiscard]] bool is_asleep(SleepWordView word) noexcept;

// What has become of a frame that may stay in memory, whole or in part.
enum class Left : std::uint8_t {
  kNot,      // its body lies elsewhere: it is to be sent as ever
  kBody,     // the body stays where it is; the header, which says so now, is to be sent
  kHeader,   // the header was left, too: nothing is to be sent
  kAndRing,  // the same, and whoever is to read it sleeps: any frame wakes it up
};
// Leaves the header, then reads the word: kHeader or kAndRing.
[[nodiscard]] Left leave_header(HeaderSlot slot, const FrameHeader& header,
                                SleepWordView readers) noexcept;

}  // namespace disttf::net
