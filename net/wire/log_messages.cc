#include "net/wire/log_messages.h"

#include <limits>

#include "net/wire/message_fields.h"

namespace disttf::net {
namespace {

constexpr MessageFields kPublishToBackupFields{
    .kind = FrameKind::kPublish, .step = true, .sequence = true, .generation = true};
constexpr MessageFields kFillFields{.kind = FrameKind::kFill,
                                    .flags = kFlagFinished,
                                    .step = true,
                                    .range_begin = true,
                                    .generation = true};
constexpr MessageFields kUpdateFields{.kind = FrameKind::kUpdate,
                                      .step = true,
                                      .sequence = true,
                                      .range_begin = true,
                                      .generation = true};
constexpr MessageFields kCompleteFields{.kind = FrameKind::kComplete, .generation = true};
constexpr MessageFields kConcludeFields{
    .kind = FrameKind::kConclude, .step = true, .generation = true};

}  // namespace

FrameHeader PublishToBackup::to_header() const noexcept {
  return {.kind = kPublishToBackupFields.kind,
          .step = view.chief,
          .sequence = view.count,
          .generation = generation};
}

std::error_code PublishToBackup::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kPublishToBackupFields)) return error;
  // It is no entry of the log and is not acknowledged.
  const bool is_numbered = header.request_id != 0;
  // The view's count has 32 bits; a larger one must not be cut to another view's number.
  if (is_numbered || header.sequence > std::numeric_limits<std::uint32_t>::max()) {
    return WireError::kBadReserved;
  }
  *this = {.view = {.chief = header.step, .count = static_cast<std::uint32_t>(header.sequence)},
           .generation = header.generation};
  return {};
}

FrameHeader Fill::to_header() const noexcept {
  return {.kind = kFillFields.kind,
          .flags = flag_if(finished, kFlagFinished),
          .request_id = entry,
          .step = step,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code Fill::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kFillFields)) return error;
  *this = {.entry = header.request_id,
           .step = header.step,
           .range_begin = header.range_begin,
           .generation = header.generation,
           .finished = has(header, kFlagFinished)};
  return {};
}

FrameHeader Update::to_header() const noexcept {
  return {.kind = kUpdateFields.kind,
          .request_id = entry,
          .step = step,
          .sequence = push,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code Update::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kUpdateFields)) return error;
  *this = {.entry = header.request_id,
           .step = header.step,
           .push = header.sequence,
           .range_begin = header.range_begin,
           .generation = header.generation};
  return {};
}

FrameHeader Complete::to_header() const noexcept {
  return {.kind = kCompleteFields.kind, .request_id = entry, .generation = generation};
}

std::error_code Complete::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kCompleteFields)) return error;
  *this = {.entry = header.request_id, .generation = header.generation};
  return {};
}

FrameHeader Conclude::to_header() const noexcept {
  return {
      .kind = kConcludeFields.kind, .request_id = entry, .step = step, .generation = generation};
}

std::error_code Conclude::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kConcludeFields)) return error;
  *this = {.entry = header.request_id, .step = header.step, .generation = header.generation};
  return {};
}

}  // namespace disttf::net
