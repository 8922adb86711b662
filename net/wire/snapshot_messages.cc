#include "net/wire/snapshot_messages.h"

#include "net/wire/message_fields.h"

namespace disttf::net {
namespace {

constexpr MessageFields kGetSnapshotShardFields{.kind = FrameKind::kGetSnapshotShard,
                                                .flags = kFlagSnapshot,
                                                .sequence = true,
                                                .generation = true};
constexpr MessageFields kFindSnapshotShardFields{.kind = FrameKind::kFindSnapshotShard,
                                                 .flags = kFlagSnapshot,
                                                 .sequence = true,
                                                 .generation = true};
constexpr MessageFields kSnapshotShardFields{.kind = FrameKind::kSnapshotShard,
                                             .flags = kFlagFinished,
                                             .step = true,
                                             .sequence = true,
                                             .range_begin = true,
                                             .generation = true};
constexpr MessageFields kWatchFields{.kind = FrameKind::kWatch, .step = true};
constexpr MessageFields kWriteSnapshotShardFields{
    .kind = FrameKind::kWriteSnapshotShard, .step = true, .sequence = true, .generation = true};

}  // namespace

FrameHeader SnapshotShardRequest::to_header() const noexcept {
  return {.kind = with_tensors ? FrameKind::kGetSnapshotShard : FrameKind::kFindSnapshotShard,
          .flags = flag_if(now, kFlagSnapshot),
          .request_id = request_id,
          .sequence = name,
          .generation = generation};
}

std::error_code SnapshotShardRequest::from_header(const FrameHeader& header) noexcept {
  // Two kinds of frames share this message. Any third kind fails in check().
  const bool gets = header.kind == FrameKind::kGetSnapshotShard;
  if (const auto error = check(header, gets ? kGetSnapshotShardFields : kFindSnapshotShardFields))
    return error;
  *this = {.request_id = header.request_id,
           .name = header.sequence,
           .now = has(header, kFlagSnapshot),
           .with_tensors = gets,
           .generation = header.generation};
  return {};
}

FrameHeader SnapshotShardReply::to_header() const noexcept {
  return {.kind = kSnapshotShardFields.kind,
          .flags = flag_if(is_result, kFlagFinished),
          .request_id = request_id,
          .step = step,
          .sequence = name,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code SnapshotShardReply::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kSnapshotShardFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .name = header.sequence,
           .range_begin = header.range_begin,
           .generation = header.generation,
           .is_result = has(header, kFlagFinished)};
  return {};
}

FrameHeader Watch::to_header() const noexcept {
  return {.kind = kWatchFields.kind, .request_id = request_id, .step = step};
}

std::error_code Watch::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kWatchFields)) return error;
  *this = {.request_id = header.request_id, .step = header.step};
  return {};
}

FrameHeader WriteSnapshotShardRequest::to_header() const noexcept {
  return {.kind = kWriteSnapshotShardFields.kind,
          .request_id = request_id,
          .step = step,
          .sequence = name,
          .generation = generation};
}

std::error_code WriteSnapshotShardRequest::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kWriteSnapshotShardFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .name = header.sequence,
           .generation = header.generation};
  return {};
}

}  // namespace disttf::net
