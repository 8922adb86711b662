// The bodies of VIEW and REPORT, and the heads of the bodies of UPDATE and FILL: messages between
// the chief and the two hosts of a range with --ps_replicas 2.
//
//   VIEW, 16 bytes       REPORT, 24 bytes      UPDATE, 16 and more     FILL, 72 and more
//    0 12  number         0 12  view            0  8  incarnation       0  8  lineage
//   12  1  primary       12  1  replica role    8 8w  trainers          8  48  six counters
//   13  1  paired        13  1  bits               n  gradient         56  4  trainers
//   14  2  reserved, 0   14  2  reserved, 0                            60  4  tensors
//                        16  8  trainers                               64  8  reserved, 0
//                                                                      72 32t of each trainer:
//                                                                             incarnation,
//                                                                             sequence, clock, used
//                                                                          n  tensors
//
// A view's number is the incarnation of the chief that made it, 8 bytes, then a count, 4 bytes.
// Integers are little-endian. Decoders take untrusted bytes: another length, or an undefined value,
// is WireError::kBadBody, and `out` is then untouched. Pure functions; callable from any thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <vector>

#include "net/wire/handshake.h"

namespace disttf::net {

// Two chiefs that run at the same time never make views of the same number, and those of the newer
// process are higher, however many the older one makes. The count continues from one chief to the
// next.
struct ViewNumber {
  std::uint64_t chief = 0;  // incarnation of the process that made it
  std::uint32_t count = 0;
  friend auto operator<=>(const ViewNumber&, const ViewNumber&) = default;
};

// Which ps serves a range. Only the chief makes a new view, with a higher number; hosts keep the
// newest.
struct View {
  ViewNumber number = {};
  std::uint8_t primary = 0;  // 0: the range's own ps, 1: the ps after it
  // The primary acknowledges nothing that the backup does not have; the backup may replace it.
  bool paired = false;
  friend bool operator==(const View&, const View&) = default;
};
inline constexpr std::size_t kViewBytes = 16;

// A host's status: sent on request, on each change, and every second.
struct Report {
  ViewNumber view = {};  // the newest that it has received
  ReplicaRole replica_role = ReplicaRole::kOnly;
  bool holds = false;        // bit 0: it has the whole state with all that was acknowledged
  bool wants_alone = false;  // bit 1: a primary that has lost its backup and waits
  bool wants_pair = false;   // bit 2: a primary whose backup has become complete
  bool finished = false;     // bit 3: the run is over here
  bool paired = false;       // bit 4: whether that view is paired
  // From a primary: the unreachable trainers. From a backup: the trainers that have asked it for
  // the range. in_set() of each.
  std::uint64_t trainers = 0;
  friend bool operator==(const Report&, const Report&) = default;
};
inline constexpr std::size_t kReportBytes = 24;

// A bit for a rank; trainers 64 ranks apart share one.
[[nodiscard]] constexpr std::uint64_t in_set(std::size_t rank) noexcept {
  return std::uint64_t{1} << (rank % 64);
}

// A set of ranks: bit rank % 64 of word rank / 64.
using RankSet = std::vector<std::uint64_t>;
[[nodiscard]] constexpr std::size_t rank_set_size(std::size_t trainers) noexcept {
  return (trainers + 63) / 64;
}

// The sources of an update; the step is in the header. The decoder consumes all bytes it is given.
struct UpdateHead {
  std::uint64_t incarnation = 0;  // async: of the trainer's process
  RankSet trainers;               // the tensor is the sum of their gradients; not empty
  friend bool operator==(const UpdateHead&, const UpdateHead&) = default;
};
// Size of the head in a run with `trainers` trainers; and the same padded with zeros, so that what
// follows is aligned to kBodyOffsetUnit.
[[nodiscard]] constexpr std::size_t update_head_bytes(std::size_t trainers) noexcept {
  return sizeof(std::uint64_t) * (1 + rank_set_size(trainers));
}
[[nodiscard]] constexpr std::size_t padded_update_head_bytes(std::size_t trainers) noexcept {
  return (update_head_bytes(trainers) + kBodyOffsetUnit - 1) / kBodyOffsetUnit * kBodyOffsetUnit;
}

struct FillHead {
  std::uint64_t lineage = 0;  // Welcome::incarnation, the same at both hosts
  std::array<std::uint64_t, 6> counters{};
  std::uint32_t trainers = 0;
  std::uint32_t tensors = 0;
  friend bool operator==(const FillHead&, const FillHead&) = default;
};
inline constexpr std::size_t kFillHeadBytes = 72;

// What a host needs to recognise a trainer's repeated pushes.
struct FillTrainer {
  std::uint64_t incarnation = 0;    // async
  std::uint64_t last_sequence = 0;  // async
  std::uint64_t clock = 0;          // async
  std::uint64_t used = 0;           // sync: the newest step whose gradient was used, plus 1
  friend bool operator==(const FillTrainer&, const FillTrainer&) = default;
};
inline constexpr std::size_t kFillTrainerBytes = 32;

[[nodiscard]] std::vector<std::byte> encode(const View& view);
[[nodiscard]] std::vector<std::byte> encode(const Report& report);
[[nodiscard]] std::vector<std::byte> encode(const UpdateHead& head);
[[nodiscard]] std::vector<std::byte> encode(const FillHead& head);
[[nodiscard]] std::vector<std::byte> encode(const FillTrainer& trainer);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, View& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, Report& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, UpdateHead& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, FillHead& out);
[[nodiscard]] std::error_code decode(std::span<const std::byte> body, FillTrainer& out);

}  // namespace disttf::net
