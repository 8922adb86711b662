// Metrics of a range that a ps serves, if they are exported (Task::meters). Otherwise each of these
// calls is a comparison with null, except for the counts of bytes.
//
// The shard counts for itself; publish() copies its counters now and then. Durations are measured
// around the calls of the core, which has no clock.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "net/wire/frame.h"
#include "roles/ps/core/range_replica.h"
#include "run/monitor/shell/meters.h"
#include "run/task.h"

namespace disttf::roles {

class RangeMeter {
 public:
  using Clock = std::chrono::steady_clock;

  // `core` must outlive it.
  RangeMeter(const Task& task, const RangeReplica& core);

  // To be placed around a call of the core that may take a gradient and make a step. `meter` must
  // not move.
  class Call {
   public:
    explicit Call(RangeMeter& meter) noexcept : meter_(meter) {
      if (meter_.meters_) {
        meter_.before();
      }
    }
    ~Call() {
      if (meter_.meters_) {
        meter_.after();
      }
    }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    RangeMeter& meter_;
  };

  // A frame's header has arrived, and this many bytes of its body. `in_place`: the body lies in
  // memory.
  void received(const net::FrameHeader& header, std::uint64_t bytes, bool in_place) noexcept;
  // A reply was sent: its header, and this many bytes.
  void sent(const net::FrameHeader& header, std::size_t bytes, bool in_place) noexcept;

  // Bytes in frames, without what peers read in shared memory.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept { return bytes_sent_; }
  [[nodiscard]] std::uint64_t bytes_received() const noexcept { return bytes_received_; }

  // Copies the shard's counters; to be called now and then, and at the end.
  void publish() noexcept {
    if (meters_) {
      copy_counters();
    }
  }

 private:
  // What a call may change in the shard.
  struct State {
    std::uint64_t restores = 0;
    std::uint64_t step = 0;
    std::uint64_t pushes = 0;
    std::uint64_t applied = 0;
    std::uint64_t staleness = 0;  // sum
  };
  [[nodiscard]] State state() const noexcept;
  void before() noexcept;
  void after() noexcept;
  void copy_counters() noexcept;
  void copy_replication() noexcept;

  const RangeReplica& core_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  ByteMeters* bytes_ = nullptr;
  std::optional<PsRangeMeters> meters_;  // nullopt: metrics are off
  // Of the current call.
  State before_;
  Clock::time_point began_{};
  // When the first gradient of the current step arrived, if one has.
  std::optional<Clock::time_point> first_at_;
  std::uint64_t views_ = 0;     // the newest view's number
  ShardCounters counted_ = {};  // of earlier shards
  ShardCounters newest_ = {};   // of this one, at the last publish()
};

}  // namespace disttf::roles
