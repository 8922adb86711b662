// The kinds of frames whose header has only a request_id; their content, if any, is in the body.
// net/wire/messages.h has the other kinds.
#pragma once

#include <cstdint>
#include <system_error>

#include "net/wire/message_fields.h"

namespace disttf::net {

template <FrameKind kKind>
struct BareMessage {
  std::uint64_t request_id = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(kKind, word(&BareMessage::request_id, &FrameHeader::request_id));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const BareMessage&, const BareMessage&) = default;
};

// With a body; its format is in net/wire/handshake.h, server_requests.h,
// replication.h and net/memory/shared_memory.h.
using HelloFrame = BareMessage<FrameKind::kHello>;
using WelcomeFrame = BareMessage<FrameKind::kWelcome>;
using RefusedFrame = BareMessage<FrameKind::kRefused>;
using ShareFrame = BareMessage<FrameKind::kShare>;
using SharedFrame = BareMessage<FrameKind::kShared>;
using ViewFrame = BareMessage<FrameKind::kView>;
using ReportFrame = BareMessage<FrameKind::kReport>;
using ComputeFrame = BareMessage<FrameKind::kCompute>;
using ResultFrame = BareMessage<FrameKind::kResult>;
using RunTaskFrame = BareMessage<FrameKind::kRunTask>;
using TaskEndedFrame = BareMessage<FrameKind::kTaskEnded>;

// Without a body.
using GetConfig = BareMessage<FrameKind::kGetConfig>;  // a trainer requests the configuration
using GetStatus = BareMessage<FrameKind::kStatus>;     // any peer requests the run's status
using Ack = BareMessage<FrameKind::kAck>;
using Fenced = BareMessage<FrameKind::kFenced>;  // the run's state has changed: pull again

// The body is a text: JSON; for the last kind a sentence.
using Publish = BareMessage<FrameKind::kPublish>;  // the chief sends a ps the configuration
using Config = BareMessage<FrameKind::kConfig>;    // a ps sends it to a trainer
using StatusReply = BareMessage<FrameKind::kStatusReply>;
using Written = BareMessage<FrameKind::kWritten>;        // the file that a ps has written
using NotWritten = BareMessage<FrameKind::kNotWritten>;  // why it has not

// As from_header() of the kind that the header has, whichever that is.
[[nodiscard]] inline std::error_code check_bare(const FrameHeader& header) noexcept {
  FrameHeader of_ack = header;
  of_ack.kind = FrameKind::kAck;
  return Ack{}.from_header(of_ack);
}

// Whether the header is of this kind and has no body.
template <typename Message>
[[nodiscard]] bool is_bodiless(const FrameHeader& header) noexcept {
  return header.body_size == 0 && !Message{}.from_header(header);
}

}  // namespace disttf::net
