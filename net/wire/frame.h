// A frame is the unit that crosses a socket between two disttf tasks: a fixed 64-byte header, then
// body_size bytes.
//
//   offset  size  field
//        0     4  magic        'D' 'T' 'F' '1': a stray client is rejected at once
//        4     1  version      kWireVersion; a receiver rejects every other value
//        5     1  kind         FrameKind
//        6     2  flags        FrameFlags; unknown bits must be 0
//        8     8  request_id   chosen by the requester, echoed in the reply
//       16     8  body_size    bytes of the body; the receiver's state limits it
//       24     8  step         global step of the message; 0 if it has none
//       32     8  sequence     depends on the kind. Of a push: async: the trainer's count of
//                              pushes, for exactly-once; elastic: the number of the micro-batch
//       40     8  range_begin  first float of the tensor range in the body; in PARAMETERS of an
//                              elastic run the micro-batches assigned to the trainer
//       48     8  generation   of the run's state; messages of an older one are rejected
//       56     4  body_offset  offset of the body if it does not follow: see kFlagInPlace
//       60     4  header_crc   crc32 (zlib's) of bytes [0, 60)
//
// Integers are little-endian. One cache line, one read. docs/wire_format.md has the bodies and
// their limits, the order of messages, a worked example and version rules. tests/net/frame_test.cc
// pins the bytes. Pure functions only: no socket, clock or log here; callable from any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

namespace disttf::net {

// The generation of a message: which state of the run it is about. A chief gives each state that it
// sets all ps to a new generation, at the beginning and after each loss of a ps. The higher of two
// is newer; messages of an older one are rejected.
//
//   bits 63 to 12  the begin of the incarnation of the chief that made it
//   bits 11 to 0   its number: one above that of the newest generation known to that chief
//
// The chief's incarnation comes first. So two chiefs that are unaware of each other, one of which
// has been replaced, never make the same generation for two states, and those of the newer chief
// are higher. 0: no state. Pure functions.

using Generation = std::uint64_t;

inline constexpr unsigned kGenerationNumberBits = 12;

// The number for messages and logs.
[[nodiscard]] constexpr std::uint64_t number_of(Generation generation) noexcept {
  return generation & ((Generation{1} << kGenerationNumberBits) - 1);
}

// The next generation of the chief with this incarnation; `newest` is the newest that it knows.
// (After 4095 of them the number restarts and the upper part grows.)
[[nodiscard]] constexpr Generation generation_after(Generation newest,
                                                    std::uint64_t chief) noexcept {
  const Generation name = std::max(newest >> kGenerationNumberBits, chief >> kGenerationNumberBits);
  return (name << kGenerationNumberBits) + number_of(newest) + 1;
}

inline constexpr std::size_t kHeaderBytes = 64;
inline constexpr std::uint8_t kWireVersion = 7;
// Bodies that are not tensors (HELLO, a refusal's sentence) are at most this large, whatever the
// peer claims. Exceptions follow.
inline constexpr std::size_t kMaxControlBodyBytes = 64 * 1024;
// The configuration in PUBLISH and CONFIG may name 65 536 variables of a user's program, and the
// description of a file in WRITTEN has a checksum of each. A receiver takes the memory for these as
// their bytes arrive, not when a header claims them.
inline constexpr std::size_t kMaxConfigBodyBytes = std::size_t{16} << 20U;
inline constexpr std::size_t kMaxWrittenBodyBytes = std::size_t{32} << 20U;

enum class FrameKind : std::uint8_t {
  kHello = 1,                // requester -> listener, first on every connection
  kWelcome = 2,              // reply to hello
  kRefused = 3,              // reply to anything: exit code and a sentence; the sender then closes
  kPublish = 4,              // chief -> ps: the run's configuration (JSON)
  kGetConfig = 5,            // trainer -> ps 0
  kConfig = 6,               // reply: JSON
  kRestore = 7,              // chief -> ps: parameters of its range at a step
  kPull = 8,                 // trainer -> ps
  kPushPull = 9,             // trainer -> ps: gradient of its range; answered when applied
  kParameters = 10,          // reply to pull and push_pull: parameters of the range
  kHeartbeat = 11,           // both directions, no reply: "I am alive"
  kGoodbye = 12,             // trainer -> ps: leaves for good
  kShutdown = 13,            // chief -> ps: the run is over
  kAck = 14,                 // reply without a body
  kStatus = 15,              // trainer -> ps: requests the run's status
  kStatusReply = 16,         // reply: JSON
  kFenced = 17,              // reply to pull and push_pull: the run's state has changed; pull again
  kGetSnapshotShard = 18,    // chief -> ps: the snapshot shard that a push of its requested
  kSnapshotShard = 19,       // reply: parameters of the range, then each optimizer tensor of it
  kPush = 20,                // elastic trainer -> ps: gradient of one micro-batch; no reply
  kWork = 21,                // to a waiting elastic trainer: a micro-batch that is missing
  kFindSnapshotShard = 22,   // chief -> ps: as kGetSnapshotShard, but the reply has no tensors
  kWriteSnapshotShard = 23,  // chief -> ps: write that snapshot shard into your --train_dir
  kWritten = 24,             // reply: JSON, describes the file
  kNotWritten = 25,          // reply: a sentence with the reason
  kShare = 26,               // trainer -> ps, primary -> backup: the sender's shared memory
  kShared = 27,              // reply: the ps's shared memory; no body: the ps declines
  kView = 28,                // chief -> host of a range: which of its two hosts is the primary
  kReport = 29,              // host -> chief: its role and its needs
  kFill = 30,                // primary -> backup: its whole state
  kUpdate = 31,              // primary -> backup: one update of the parameters
  kComplete = 32,            // primary -> backup: from now on acknowledgements wait for you
  kCompute = 33,        // anyone -> server: an expression to compute (net/wire/server_requests.h)
  kResult = 34,         // reply: the result
  kRunTask = 35,        // driver -> server: run your task of a run (net/wire/server_requests.h)
  kTaskEnded = 36,      // server -> driver: how that task's process has ended
  kBest = 37,           // chief <-> ps, primary -> backup: the best intermediate evaluation
  kMetrics = 38,        // trainer -> ps 0: its metrics (JSON); no reply
  kGetMetrics = 39,     // chief -> ps: requests its metrics, and those that trainers have sent
  kMetricsReply = 40,   // reply: texts (net/wire/metrics_messages.h)
  kTrace = 41,          // chief -> ps, ps 0 -> trainer: measure these steps; no reply
  kWatch = 42,          // evaluator -> ps: requests parameters of a later step, or the result
  kConclude = 43,       // primary -> backup: the run ends with the step that you hold
  kPeerDiscovery = 44,  // trainer <-> ps 0: peer discovery among the trainers of a host
};

enum FrameFlags : std::uint16_t {
  // On parameters and snapshot shards: the run is over, and these are the final ones. On the
  // chief's pull: the answer shall be final. On restore and fill: the state is the result of a run
  // that ended before its last step.
  kFlagFinished = 1U << 0U,
  kFlagDropped = 1U << 1U,   // on parameters: the gradient came late and was not used
  kFlagSnapshot = 1U << 2U,  // on the chief's push_pull or pull-next: keep the resulting state
  kFlagPrevious = 1U << 3U,  // on pull: the parameters from before the newest step
  kFlagNext = 1U << 4U,      // on pull: parameters of a step after `step`; waits for it
  // The body does not follow: it lies in the sender's shared memory at offset `place`.
  // net/tcp/ sets and clears this flag: see BodyInPlace.
  kFlagInPlace = 1U << 5U,
  // The tensor in the body is bfloat16, or in blocks of 8-bit or 4-bit numbers. On push_pull, and
  // on pull with next, the reply may use that form, too.
  kFlagBf16 = 1U << 6U,
  kFlagSparse = 1U << 7U,  // on a push: net/wire/sparse_gradient.h
  kFlagInt8 = 1U << 8U,
  kFlagInt4 = 1U << 9U,
  // On push_pull within a host group: the leader's body is the sum of all gradients, and a member
  // sends no body. On the parameters that answer a member: the leader has them.
  kFlagGroupSum = 1U << 10U,
};
inline constexpr std::uint16_t kKnownFlags = kFlagFinished | kFlagDropped | kFlagSnapshot |
                                             kFlagPrevious | kFlagNext | kFlagInPlace | kFlagBf16 |
                                             kFlagSparse | kFlagInt8 | kFlagInt4 | kFlagGroupSum;

// Alignment of bodies in shared memory; the frame stores the offset in this unit.
inline constexpr std::size_t kBodyOffsetUnit = 64;

// The bytes to take memory for next, of a body of `size` bytes of which `have` have arrived: as
// many as these, and at least kMaxControlBodyBytes.
[[nodiscard]] constexpr std::size_t next_piece(std::size_t have, std::uint64_t size) noexcept {
  const std::size_t piece = have < kMaxControlBodyBytes ? kMaxControlBodyBytes : have;
  return size - have < piece ? static_cast<std::size_t>(size - have) : piece;
}

struct FrameHeader {
  FrameKind kind = FrameKind::kHello;
  std::uint16_t flags = 0;
  std::uint64_t request_id = 0;
  std::uint64_t body_size = 0;  // bytes
  std::uint64_t step = 0;
  std::uint64_t sequence = 0;
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  std::uint64_t body_offset = 0;  // bytes, a multiple of kBodyOffsetUnit; 0 without kFlagInPlace

  // The number of bytes that follow the header.
  [[nodiscard]] std::uint64_t bytes_behind() const noexcept {
    return (flags & kFlagInPlace) != 0 ? 0 : body_size;
  }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

// A body that can be read in place when its header arrives. It stays unchanged until the frame is
// answered. Empty: the body is sent.
struct BodyInPlace {
  std::span<const std::byte> bytes = {};
  std::shared_ptr<const void> owner = {};  // keeps them
};

enum class WireError {
  kBadMagic = 1,
  kBadVersion,
  kBadChecksum,
  kBadKind,
  kBadFlags,
  kBadReserved,   // bytes that must be 0 are not
  kBodyTooLarge,  // more than the receiver's state allows
  kBadBody,       // a control body that does not decode
  kUnexpected,    // a kind that is invalid at this point
  kRefused,       // the peer answered REFUSED; its sentence has the reason
};
[[nodiscard]] const std::error_category& wire_category() noexcept;
[[nodiscard]] std::error_code make_error_code(WireError error) noexcept;

// Decodes an untrusted header. On error `out` is untouched and the caller must close the
// connection, because the position of the next header is unknown.
[[nodiscard]] std::error_code decode_header(std::span<const std::byte, kHeaderBytes> bytes,
                                            FrameHeader& out) noexcept;
// False if these first bytes, however few, cannot begin a frame. A listener can so reject an HTTP
// client that sent 18 bytes without waiting for 64.
[[nodiscard]] bool may_be_frame(std::span<const std::byte> prefix) noexcept;
// Cannot fail.
void encode_header(const FrameHeader& header, std::span<std::byte, kHeaderBytes> out) noexcept;

}  // namespace disttf::net

template <>
struct std::is_error_code_enum<disttf::net::WireError> : std::true_type {};
