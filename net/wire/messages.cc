#include "net/wire/messages.h"

#include <bit>
#include <cmath>

#include "net/wire/message_fields.h"

namespace disttf::net {
namespace {

constexpr MessageFields kGoodbyeFields{.kind = FrameKind::kGoodbye, .generation = true};
constexpr MessageFields kPullFields{
    .kind = FrameKind::kPull, .flags = kFlagPrevious | kFlagFinished, .sequence = true};
constexpr MessageFields kAwaitStepFields{.kind = FrameKind::kPull,
                                         .flags = kFlagNext | kFlagSnapshot | kTensorForms,
                                         .step = true,
                                         .sequence = true,
                                         .generation = true};
constexpr MessageFields kPushPullFields{.kind = FrameKind::kPushPull,
                                        .flags = kFlagSnapshot | kFlagGroupSum | kTensorForms,
                                        .step = true,
                                        .sequence = true,
                                        .range_begin = true,
                                        .generation = true};
constexpr MessageFields kPushFields{.kind = FrameKind::kPush,
                                    .flags = kTensorForms,
                                    .step = true,
                                    .sequence = true,
                                    .range_begin = true,
                                    .generation = true};
constexpr MessageFields kParametersFields{
    .kind = FrameKind::kParameters,
    // Parameters are dense: only a gradient may be sent in the sparse form.
    .flags = kFlagFinished | kFlagDropped | kFlagGroupSum | (kTensorForms & ~unsigned{kFlagSparse}),
    .step = true,
    .sequence = true,
    .range_begin = true,
    .generation = true};
constexpr MessageFields kWorkFields{
    .kind = FrameKind::kWork, .step = true, .sequence = true, .generation = true};
constexpr MessageFields kRestoreFields{.kind = FrameKind::kRestore,
                                       .flags = kFlagFinished,
                                       .step = true,
                                       .range_begin = true,
                                       .generation = true};
constexpr MessageFields kShutdownFields{
    .kind = FrameKind::kShutdown, .step = true, .generation = true};
constexpr MessageFields kHeartbeatFields{.kind = FrameKind::kHeartbeat, .generation = true};
constexpr MessageFields kPeerDiscoveryFields{
    .kind = FrameKind::kPeerDiscovery, .step = true, .sequence = true};
constexpr MessageFields kBestFields{.kind = FrameKind::kBest, .step = true, .sequence = true};

constexpr std::uint16_t form_in(const FrameHeader& header) noexcept {
  return header.flags & kTensorForms;
}

// PARAMETERS has the share in the field range_begin.
constexpr unsigned kStrideShift = 32;

}  // namespace

FrameHeader Goodbye::to_header() const noexcept {
  return {.kind = kGoodbyeFields.kind, .request_id = request_id, .generation = generation};
}

std::error_code Goodbye::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kGoodbyeFields)) return error;
  *this = {.request_id = header.request_id, .generation = header.generation};
  return {};
}

FrameHeader Pull::to_header() const noexcept {
  FrameHeader header{.kind = kPullFields.kind, .request_id = request_id, .sequence = configuration};
  header.flags |= flag_if(previous, kFlagPrevious);
  header.flags |= flag_if(concludes, kFlagFinished);
  return header;
}

std::error_code Pull::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kPullFields)) return error;
  *this = {.request_id = header.request_id,
           .configuration = header.sequence,
           .previous = has(header, kFlagPrevious),
           .concludes = has(header, kFlagFinished)};
  return {};
}

FrameHeader AwaitStep::to_header() const noexcept {
  FrameHeader header{.kind = kAwaitStepFields.kind,
                     .flags = form,
                     .request_id = request_id,
                     .step = step,
                     .sequence = push,
                     .generation = generation};
  header.flags |= kFlagNext;
  header.flags |= flag_if(keep_snapshot, kFlagSnapshot);
  return header;
}

std::error_code AwaitStep::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kAwaitStepFields)) return error;
  // PULL and AWAIT_STEP share a kind; this flag is what tells them apart.
  if (!has(header, kFlagNext)) return WireError::kBadFlags;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .push = header.sequence,
           .keep_snapshot = has(header, kFlagSnapshot),
           .generation = header.generation,
           .form = form_in(header)};
  return {};
}

FrameHeader PushPull::to_header() const noexcept {
  FrameHeader header{.kind = kPushPullFields.kind,
                     .flags = form,
                     .request_id = request_id,
                     .step = step,
                     .sequence = push,
                     .range_begin = range_begin,
                     .generation = generation};
  header.flags |= flag_if(keep_snapshot, kFlagSnapshot);
  header.flags |= flag_if(group_sum, kFlagGroupSum);
  return header;
}

std::error_code PushPull::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kPushPullFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .push = header.sequence,
           .keep_snapshot = has(header, kFlagSnapshot),
           .group_sum = has(header, kFlagGroupSum),
           .range_begin = header.range_begin,
           .generation = header.generation,
           .form = form_in(header)};
  return {};
}

FrameHeader Push::to_header() const noexcept {
  return {.kind = kPushFields.kind,
          .flags = form,
          .request_id = request_id,
          .step = step,
          .sequence = micro_batch,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code Push::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kPushFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .micro_batch = header.sequence,
           .range_begin = header.range_begin,
           .generation = header.generation,
           .form = form_in(header)};
  return {};
}

FrameHeader Parameters::to_header() const noexcept {
  FrameHeader header{.kind = kParametersFields.kind,
                     .flags = form,
                     .request_id = request_id,
                     .step = step,
                     .sequence = counts_from,
                     // Both halves have 32 bits, so neither touches the other.
                     .range_begin = share.first | static_cast<std::uint64_t>(share.stride)
                                                      << kStrideShift,
                     .generation = generation};
  header.flags |= flag_if(finished, kFlagFinished);
  header.flags |= flag_if(dropped, kFlagDropped);
  header.flags |= flag_if(group_sum, kFlagGroupSum);
  return header;
}

std::error_code Parameters::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kParametersFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .counts_from = header.sequence,
           .share = {.first = static_cast<std::uint32_t>(header.range_begin),
                     .stride = static_cast<std::uint32_t>(header.range_begin >> kStrideShift)},
           .generation = header.generation,
           .finished = has(header, kFlagFinished),
           .dropped = has(header, kFlagDropped),
           .group_sum = has(header, kFlagGroupSum),
           .form = form_in(header)};
  return {};
}

// PEER_DISCOVERY has its two numbers in the fields step and sequence.
FrameHeader PeerDiscovery::to_header() const noexcept {
  return {.kind = kPeerDiscoveryFields.kind,
          .request_id = request_id,
          .step = listener_name,
          .sequence = token};
}

std::error_code PeerDiscovery::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kPeerDiscoveryFields)) return error;
  *this = {.request_id = header.request_id, .listener_name = header.step, .token = header.sequence};
  return {};
}

FrameHeader Work::to_header() const noexcept {
  return {.kind = kWorkFields.kind,
          .request_id = request_id,
          .step = step,
          .sequence = micro_batch,
          .generation = generation};
}

std::error_code Work::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kWorkFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .micro_batch = header.sequence,
           .generation = header.generation};
  return {};
}

FrameHeader Restore::to_header() const noexcept {
  return {.kind = kRestoreFields.kind,
          .flags = flag_if(finished, kFlagFinished),
          .request_id = request_id,
          .step = step,
          .range_begin = range_begin,
          .generation = generation};
}

std::error_code Restore::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kRestoreFields)) return error;
  *this = {.request_id = header.request_id,
           .step = header.step,
           .range_begin = header.range_begin,
           .generation = header.generation,
           .finished = has(header, kFlagFinished)};
  return {};
}

FrameHeader Shutdown::to_header() const noexcept {
  return {.kind = kShutdownFields.kind,
          .request_id = request_id,
          .step = step,
          .generation = generation};
}

std::error_code Shutdown::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kShutdownFields)) return error;
  *this = {.request_id = header.request_id, .step = header.step, .generation = header.generation};
  return {};
}

FrameHeader Heartbeat::to_header() const noexcept {
  return {.kind = kHeartbeatFields.kind, .request_id = request_id, .generation = generation};
}

std::error_code Heartbeat::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kHeartbeatFields)) return error;
  *this = {.request_id = header.request_id, .generation = header.generation};
  return {};
}

// BEST has the bits of the loss in the field sequence.
FrameHeader Best::to_header() const noexcept {
  return {.kind = kBestFields.kind,
          .request_id = request_id,
          .step = step,
          .sequence = std::bit_cast<std::uint64_t>(loss)};
}

std::error_code Best::from_header(const FrameHeader& header) noexcept {
  if (const auto error = check(header, kBestFields)) return error;
  // Any 64 bits are a double, and a NaN would compare false with every other loss.
  const auto loss_in = std::bit_cast<double>(header.sequence);
  if (!std::isfinite(loss_in)) return WireError::kBadBody;
  *this = {.request_id = header.request_id, .step = header.step, .loss = loss_in};
  return {};
}

FrameHeader header_of(const TrainerRequest& request) {
  return std::visit([](const auto& each) { return each.to_header(); }, request);
}

}  // namespace disttf::net
