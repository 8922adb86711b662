#include "net/wire/cut_messages.h"

#include "net/wire/message_fields.h"

namespace disttf::net {
namespace {

constexpr MessageFields kGetCutFields{
    .kind = FrameKind::kGetCut, .flags = kFlagCut, .sequence = true, .generation = true};
constexpr MessageFields kFindCutFields{
    .kind = FrameKind::kFindCut, .flags = kFlagCut, .sequence = true, .generation = true};
constexpr MessageFields kCutFields{.kind = FrameKind::kCut,
                                   .flags = kFlagFinished,
                                   .step = true,
                                   .sequence = true,
                                   .range_begin = true,
                                   .generation = true};
constexpr MessageFields kWatchFields{.kind = FrameKind::kWatch, .step = true};
constexpr MessageFields kWriteCutFields{
    .kind = FrameKind::kWriteCut, .step = true, .sequence = true, .generation = true};

}  // namespace

FrameHeader CutRequest::to_header() const noexcept {
  return {.kind = with_tensors ? FrameKind::kGetCut : FrameKind::kFindCut,
          .flags = flag_if(now, kFlagCut),
          .request_id = request_id,
          .sequence = name,
          .generation = generation};
}

std::error_code CutRequest::from_header(const FrameHeader& header) noexcept {
  const bool gets = header.kind == FrameKind::kGetCut;
  if (const auto error = check(header, gets ? kGetCutFields : kFindCutFields)) return error;
  *this = {.request_id = header.request_id,
           .name = header.sequence,
           .now = has(header, kFlagCut),
           .with_tensors = gets,
           .generation = header.generation};
  return {};
}

FrameHeader CutReply::to_header() const noexcept {
  return {.kind = kCutFields.kind,
          .flags = flag_if(is_result, kFlagFinished),
          .request_id = request_id,
          .step = step,
          .sequence = name,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code CutReply::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kCutFields)) return error;
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

FrameHeader WriteCutRequest::to_header() const noexcept {
  return {.kind = kWriteCutFields.kind,
          .request_id = request_id,
          .step = step,
          .sequence = name,
          .generation = generation};
}

std::error_code WriteCutRequest::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kWriteCutFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .name = header.sequence,
           .generation = header.generation};
  return {};
}

}  // namespace disttf::net
