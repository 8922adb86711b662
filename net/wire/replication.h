// What the chief and the two hosts of a range say to each other with --ps_replicas 2: headers and
// bodies.
//
// The bodies of VIEW and REPORT, and the heads of the bodies of UPDATE and FILL: messages between
// the chief and the two hosts of a range with --ps_replicas 2. encode() and decode():
// net/wire/body_fields.h.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <system_error>
#include <vector>

#include "net/wire/handshake.h"
#include "net/wire/message_fields.h"

namespace disttf::net {

// Two chiefs that run at the same time never make views of the same number, and those of the newer
// process are higher, however many the older one makes. The count continues from one chief to the
// next.
struct ViewNumber {
  std::uint64_t chief = 0;  // incarnation of the process that made it
  std::uint32_t count = 0;

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("number: chief", self.chief);
    fields.u32("number: count", self.count);
  }
  friend auto operator<=>(const ViewNumber&, const ViewNumber&) = default;
};

// Which ps serves a range. Only the chief makes a new view, with a higher number; hosts keep the
// newest.
struct View {
  ViewNumber number = {};
  std::uint8_t primary = 0;  // 0: the range's own ps, 1: the ps after it
  // The primary acknowledges nothing that the backup does not have; the backup may replace it.
  bool paired = false;

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    ViewNumber::fields_of_body(fields, self.number);
    fields.u8("primary", self.primary, 0, 1);
    fields.u8("paired", self.paired, 0, 1);
    fields.reserved(2);
  }
  friend bool operator==(const View&, const View&) = default;
};

// A host's status: sent on request, on each change, and every second.
struct Report {
  ViewNumber view = {};  // the newest that it has received
  ReplicaRole replica_role = ReplicaRole::kOnly;
  bool holds = false;        // it has the whole state with all that was acknowledged
  bool wants_alone = false;  // a primary that has lost its backup and waits
  bool wants_pair = false;   // a primary whose backup has become complete
  bool finished = false;     // the run is over here
  bool paired = false;       // whether that view is paired
  // From a primary: the unreachable trainers. From a backup: the trainers that have asked it for
  // the range. in_set() of each.
  std::uint64_t trainers = 0;

  // A new bit is a new wire version, because decode() refuses unknown ones.
  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    ViewNumber::fields_of_body(fields, self.view);
    fields.u8("replica role", self.replica_role, ReplicaRole::kOnly, ReplicaRole::kBackup);
    fields.bits("bits", self.holds, self.wants_alone, self.wants_pair, self.finished, self.paired);
    fields.reserved(2);
    fields.u64("trainers", self.trainers);
  }
  friend bool operator==(const Report&, const Report&) = default;
};

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

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("incarnation", self.incarnation);
    fields.words("trainers", self.trainers);
    // An update without any trainer would be a step that no gradient caused.
    fields.require(
        std::ranges::any_of(self.trainers, [](std::uint64_t word) { return word != 0; }));
  }
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

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("lineage", self.lineage);
    fields.array("counters", self.counters);
    fields.u32("trainers", self.trainers);
    fields.u32("tensors", self.tensors);
    fields.reserved(8);
  }
  friend bool operator==(const FillHead&, const FillHead&) = default;
};

// What a host needs to recognise a trainer's repeated pushes.
struct FillTrainer {
  std::uint64_t incarnation = 0;    // async
  std::uint64_t last_sequence = 0;  // async
  std::uint64_t clock = 0;          // async
  std::uint64_t used = 0;           // sync: the newest step whose gradient was used, plus 1

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("incarnation", self.incarnation);
    fields.u64("sequence", self.last_sequence);
    fields.u64("clock", self.clock);
    fields.u64("used", self.used);
  }
  friend bool operator==(const FillTrainer&, const FillTrainer&) = default;
};

// Messages from the primary of a range to its backup, one struct for each kind of frame, as in
// net/wire/messages.h. Bodies: net/wire/replication.h.
//
// FILL, UPDATE, COMPLETE and CONCLUDE are entries of a log, numbered in order; request_id is an
// entry's number. The backup acknowledges each.

// The number of a view, in step and sequence.
template <typename Message>
struct ViewField {
  ViewNumber Message::*member;

  constexpr void write(const Message& message, FrameHeader& header) const noexcept {
    header.step = (message.*member).chief;
    header.sequence = (message.*member).count;
  }
  constexpr bool take(FrameHeader& rest, Message& message) const noexcept {
    const auto count = static_cast<std::uint32_t>(rest.sequence);
    message.*member = {.chief = rest.step, .count = count};
    rest.step = 0;
    // A larger count stays, and is refused: it must not be cut to another view's number.
    rest.sequence -= count;
    return true;
  }
};

// PUBLISH on a replica channel: the primary sends the configuration that follows.
struct PublishToBackup {
  ViewNumber view = {};  // in which it is the primary
  Generation generation = 0;

  // It is no entry of the log, and is not acknowledged.
  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kPublish, ViewField<PublishToBackup>{&PublishToBackup::view},
                 word(&PublishToBackup::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const PublishToBackup&, const PublishToBackup&) = default;
};

// The whole state.
struct Fill {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // that the state is of
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  bool finished = false;  // the run's result: no update follows

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(
        FrameKind::kFill, word(&Fill::entry, &FrameHeader::request_id),
        word(&Fill::step, &FrameHeader::step), word(&Fill::range_begin, &FrameHeader::range_begin),
        word(&Fill::generation, &FrameHeader::generation), flag(&Fill::finished, kFlagFinished));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Fill&, const Fill&) = default;
};

// A sum of gradients that has been applied.
struct Update {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;         // of the parameters that the gradients were computed from
  std::uint64_t push = 0;         // async: the push's number as its trainer counts
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kUpdate, word(&Update::entry, &FrameHeader::request_id),
                 word(&Update::step, &FrameHeader::step),
                 word(&Update::push, &FrameHeader::sequence),
                 word(&Update::range_begin, &FrameHeader::range_begin),
                 word(&Update::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Update&, const Update&) = default;
};

// From here on nothing is acknowledged that the backup does not have.
struct Complete {
  std::uint64_t entry = 0;
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kComplete, word(&Complete::entry, &FrameHeader::request_id),
                 word(&Complete::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Complete&, const Complete&) = default;
};

// The chief has taken these parameters as the run's result before the last step: no update follows.
struct Conclude {
  std::uint64_t entry = 0;
  std::uint64_t step = 0;  // of the parameters
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kConclude, word(&Conclude::entry, &FrameHeader::request_id),
                 word(&Conclude::step, &FrameHeader::step),
                 word(&Conclude::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Conclude&, const Conclude&) = default;
};

}  // namespace disttf::net
