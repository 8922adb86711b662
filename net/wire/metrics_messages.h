// Metrics of tasks during a run, over control channels: METRICS, GET_METRICS, METRICS_REPLY and
// TRACE. run/monitor/core/task_metrics.h defines the texts; here they are bytes.
//
//   METRICS        trainer -> ps 0     body: a text of at most kMaxMetricsBytes; not answered
//   GET_METRICS    chief -> ps         no body
//   METRICS_REPLY  ps -> chief         body: texts one after the other, the ps's own first, then
//                                      those that came since the last reply; of each
//                                       0  4  length, at most kMaxMetricsBytes
//                                       4  n  the text
//   TRACE          chief -> ps         no body: all `sequence` steps from `step` on are to be
//                  ps 0 -> trainer     measured. Repeated until they have been; not answered
//
// The decoder takes untrusted bytes. Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "net/wire/bare_message.h"

namespace disttf::net {

inline constexpr std::size_t kMaxMetricsBytes = 16 * 1024;
// Enough for a thousand trainers with little text each, or a few with the maximum.
inline constexpr std::size_t kMaxMetricsReplyBytes = 1024 * 1024;

using MetricsFrame = BareMessage<FrameKind::kMetrics>;
using GetMetrics = BareMessage<FrameKind::kGetMetrics>;
using MetricsReplyFrame = BareMessage<FrameKind::kMetricsReply>;

struct TraceSteps {
  std::uint64_t request_id = 0;
  std::uint64_t from = 0;
  std::uint64_t count = 0;

  [[nodiscard]] static constexpr auto fields() noexcept {
    return frame(FrameKind::kTrace, word(&TraceSteps::request_id, &FrameHeader::request_id),
                 word(&TraceSteps::from, &FrameHeader::step),
                 word(&TraceSteps::count, &FrameHeader::sequence));
  }
  [[nodiscard]] FrameHeader to_header() const noexcept { return header_of_fields(*this); }
  [[nodiscard]] std::error_code from_header(const FrameHeader& header) noexcept {
    return read_fields(header, *this);
  }
  friend bool operator==(const TraceSteps&, const TraceSteps&) = default;
};

// Encodes as many of the texts as fit, in order.
[[nodiscard]] std::vector<std::byte> encode_metrics(std::span<const std::string> texts);
// kBadBody for a length that does not fit; `out` is unchanged then.
[[nodiscard]] std::error_code decode_metrics(std::span<const std::byte> body,
                                             std::vector<std::string>& out);

}  // namespace disttf::net
