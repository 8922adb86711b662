// Messages between the chief and a ps about snapshot shards, one struct for each kind of frame, as
// in net/wire/messages.h. The name of a shard is the number of the push that asked for it.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/body_fields.h"
#include "net/wire/message_fields.h"

namespace disttf::net {

// GET_SNAPSHOT_SHARD or FIND_SNAPSHOT_SHARD.
struct SnapshotShardRequest {
  std::uint64_t request_id = 0;
  std::uint64_t name = 0;
  bool now = false;           // of the current state: the shard is made first, under this name
  bool with_tensors = false;  // GET_SNAPSHOT_SHARD; otherwise only its step is wanted
  Generation generation = 0;  // of the state

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kFindSnapshotShard,
                 word(&SnapshotShardRequest::request_id, &FrameHeader::request_id),
                 word(&SnapshotShardRequest::name, &FrameHeader::sequence),
                 flag(&SnapshotShardRequest::now, kFlagSnapshot),
                 word(&SnapshotShardRequest::generation, &FrameHeader::generation));
  }
  // Two kinds of frames share this message.
  [[nodiscard]] FrameHeader to_header() const noexcept {
    FrameHeader header = header_of_fields(*this);
    if (with_tensors) header.kind = FrameKind::kGetSnapshotShard;
    return header;
  }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    const bool gets = header.kind == FrameKind::kGetSnapshotShard;
    FrameHeader finds = header;
    if (gets) finds.kind = FrameKind::kFindSnapshotShard;
    const std::error_code error = read_fields(finds, *this);
    with_tensors = error ? with_tensors : gets;
    return error;
  }
  friend bool operator==(const SnapshotShardRequest&, const SnapshotShardRequest&) = default;
};

// SNAPSHOT_SHARD, the answer to both, and to WATCH.
struct SnapshotShardReply {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the state
  std::uint64_t name = 0;
  std::uint64_t range_begin = 0;  // floats
  Generation generation = 0;
  bool is_result = false;  // to WATCH: the run is over, and this is its result

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kSnapshotShard,
                 word(&SnapshotShardReply::request_id, &FrameHeader::request_id),
                 word(&SnapshotShardReply::step, &FrameHeader::step),
                 word(&SnapshotShardReply::name, &FrameHeader::sequence),
                 word(&SnapshotShardReply::range_begin, &FrameHeader::range_begin),
                 word(&SnapshotShardReply::generation, &FrameHeader::generation),
                 flag(&SnapshotShardReply::is_result, kFlagFinished));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const SnapshotShardReply&, const SnapshotShardReply&) = default;
};

// WATCH: an evaluator requests the range's parameters as they are evaluated (their averages, if the
// run has these) as soon as they are those of `step` or a later one, or the run is over. The
// answer, a SNAPSHOT_SHARD, may take that long. A newer WATCH replaces an older one.
struct Watch {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kWatch, word(&Watch::request_id, &FrameHeader::request_id),
                 word(&Watch::step, &FrameHeader::step));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const Watch&, const Watch&) = default;
};

// WRITE_SNAPSHOT_SHARD: requests the ps to write its snapshot shard into its own directory.
struct WriteSnapshotShardRequest {
  std::uint64_t request_id = 0;
  std::uint64_t step = 0;  // of the checkpoint
  std::uint64_t name = 0;
  Generation generation = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kWriteSnapshotShard,
                 word(&WriteSnapshotShardRequest::request_id, &FrameHeader::request_id),
                 word(&WriteSnapshotShardRequest::step, &FrameHeader::step),
                 word(&WriteSnapshotShardRequest::name, &FrameHeader::sequence),
                 word(&WriteSnapshotShardRequest::generation, &FrameHeader::generation));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const WriteSnapshotShardRequest&,
                         const WriteSnapshotShardRequest&) = default;
};

// The body of WRITE_SNAPSHOT_SHARD: which file of a checkpoint a ps writes. The step is in the
// header. encode() and decode(): net/wire/body_fields.h.
struct WriteSnapshotShard {
  std::uint64_t attempt = 0;  // tells this save from others of its step, drawn at random
  std::uint32_t shard = 0;    // the ps's index
  std::uint32_t shards = 1;   // the number of ps, which is that of files

  template <typename Fields, typename Self>
  static constexpr void fields_of_body(Fields& fields, Self& self) {
    fields.u64("attempt", self.attempt);
    fields.u32("shard", self.shard);
    fields.u32("shards", self.shards);
    fields.require(self.shard < self.shards);
  }
  friend bool operator==(const WriteSnapshotShard&, const WriteSnapshotShard&) = default;
};

}  // namespace disttf::net
