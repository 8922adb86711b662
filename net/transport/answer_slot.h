// Answers without a frame, between tasks that share memory (net/transport/shared_memory.h): the ps
// leaves the answer's header in its own memory, in a slot that the trainer looks at, and rings,
// with a HEARTBEAT, only where the trainer sleeps. A word in the trainer's memory says whether it
// does.
//
// The ps leaves the answer, then reads the word. The trainer sets the word, then looks once more,
// then sleeps. All four are sequentially consistent, so at least one of the two sees what the other
// did, and no answer waits for a sleeper who was not rung.
//
// One writer and one reader for each slot, and for each word. All functions are wait-free.
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
//        0    64  the newest answer's header, as it would cross the socket
//       64     8  twice the number of answers that have been left; odd while one is being written
//       72    56  unused
inline constexpr std::size_t kAnswerSlotBytes = 128;
using AnswerSlot = std::span<std::byte, kAnswerSlotBytes>;
using AnswerSlotView = std::span<const std::byte, kAnswerSlotBytes>;

void leave_answer(AnswerSlot slot, const FrameHeader& header) noexcept;
// The second field: a trainer that remembers it from before its request finds out by it whether
// there is an answer.
[[nodiscard]] std::uint64_t answer_count(AnswerSlotView slot) noexcept;
// The first field. Somebody else writes there: it is checked as a frame's header is, see
// decode_header(), and may be bad where answer_count() is odd.
[[nodiscard]] std::error_code read_answer(AnswerSlotView slot, FrameHeader& out) noexcept;

// On a boundary of as many bytes. 0: awake.
inline constexpr std::size_t kSleepWordBytes = 4;
using SleepWord = std::span<std::byte, kSleepWordBytes>;
using SleepWordView = std::span<const std::byte, kSleepWordBytes>;

void set_asleep(SleepWord word, bool asleep) noexcept;
[[nodiscard]] bool is_asleep(SleepWordView word) noexcept;

}  // namespace disttf::net
