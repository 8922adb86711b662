// Headers without a frame, between tasks that share memory (net/transport/shared_memory.h): one
// leaves a header in its own memory, in a slot that the other one looks at, and rings, with a
// HEARTBEAT, only where that one sleeps. A word in that one's memory says whether it does. So a ps
// answers trainers, and trainers push to a ps that is awake.
//
// Who leaves a header does so, then reads the word. Who waits for one sets the word, then looks
// once more, then sleeps. All four are sequentially consistent, so at least one of the two sees
// what the other did, and no header waits for a sleeper who was not rung.
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
//        0    64  the newest header, as it would cross the socket
//       64     8  twice the number of headers that have been left; odd while one is being written
//       72    56  unused
inline constexpr std::size_t kHeaderSlotBytes = 128;
using HeaderSlot = std::span<std::byte, kHeaderSlotBytes>;
using HeaderSlotView = std::span<const std::byte, kHeaderSlotBytes>;

void leave_header(HeaderSlot slot, const FrameHeader& header) noexcept;
// The second field.
[[nodiscard]] std::uint64_t header_count(HeaderSlotView slot) noexcept;
// The first field. Somebody else writes there: it is checked as a frame's header is, see
// decode_header(), and may be bad where header_count() is odd.
[[nodiscard]] std::error_code read_header(HeaderSlotView slot, FrameHeader& out) noexcept;

// What a reader remembers of a slot.
class HeaderSlotReader {
 public:
  // What has been left until now is none of this reader's.
  void skip(HeaderSlotView slot) noexcept { taken_ = header_count(slot); }
  // Whether there is one that it has not taken.
  [[nodiscard]] bool sees(HeaderSlotView slot) const noexcept {
    const std::uint64_t count = header_count(slot);
    return count != taken_ && count % 2 == 0;
  }
  // As read_header(). REQUIRES: sees().
  [[nodiscard]] std::error_code take(HeaderSlotView slot, FrameHeader& out) noexcept {
    skip(slot);
    return read_header(slot, out);
  }

 private:
  std::uint64_t taken_ = 0;  // header_count() of the newest
};

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

}  // namespace disttf::net
