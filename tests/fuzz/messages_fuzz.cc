// The messages of net/wire/messages.h and related headers: to_header() returns, field by field, the
// header that from_header() accepted; and no header is two messages.
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "net/wire/codec.h"
#include "net/wire/log_messages.h"
#include "net/wire/messages.h"
#include "net/wire/metrics_messages.h"
#include "net/wire/snapshot_messages.h"

namespace {

using disttf::net::FrameHeader;
using disttf::net::kHeaderBytes;

template <typename Message>
int check(const FrameHeader& header) {
  Message message;
  if (message.from_header(header)) return 0;
  FrameHeader again = message.to_header();
  again.body_size = header.body_size;
  if (again != header) std::abort();
  return 1;
}

template <typename... Messages>
void check_all(const FrameHeader& header) {
  if ((check<Messages>(header) + ...) > 1) std::abort();
}

}  // namespace

// The input is a header without its checksum and its version, which are corrected.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf::net;
  static constexpr std::size_t kVersionAt = 4;
  static constexpr std::size_t kChecksumAt = 60;
  if (size < kHeaderBytes) return 0;
  std::array<std::byte, kHeaderBytes> bytes{};
  std::copy_n(std::as_bytes(std::span(data, size)).begin(), bytes.size(), bytes.begin());
  bytes[kVersionAt] = std::byte{kWireVersion};
  const auto crc = ::crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), kChecksumAt);
  store_le(static_cast<std::uint32_t>(crc), std::span(bytes).subspan(kChecksumAt));
  FrameHeader header;
  if (decode_header(bytes, header)) return 0;
  check_all<Goodbye, Pull, AwaitStep, PushPull, Push, Parameters, PeerDiscovery, Work, Restore,
            Shutdown, Heartbeat, GetConfig, Config, GetStatus, StatusReply, Ack, Fenced, Written,
            NotWritten, HelloFrame, WelcomeFrame, RefusedFrame, ShareFrame, SharedFrame, ViewFrame,
            ReportFrame, ComputeFrame, ResultFrame, RunTaskFrame, TaskEndedFrame,
            SnapshotShardRequest, SnapshotShardReply, WriteSnapshotShardRequest, Watch,
            PublishToBackup, Fill, Update, Complete, Conclude, Best, TraceSteps, MetricsFrame,
            GetMetrics, MetricsReplyFrame>(header);
  return 0;
}
