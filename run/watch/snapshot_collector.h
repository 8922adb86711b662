// Fetches the state of the ps for a task beside a run, one snapshot after the other, while that
// task computes: of the next step when it wants one, and finally the result. A separate thread
// listens to the ps, so that the result is received before the ps end; the run does not wait for
// this task.
//
// At most one snapshot is held, and one is in progress.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "math/aligned.h"
#include "model/trained_model.h"
#include "net/waiting/interrupt.h"
#include "run/process/stop_signal.h"
#include "run/run_config.h"
#include "run/task.h"
#include "run/watch/snapshot_plan.h"
#include "run/watch/watch_link.h"

namespace disttf::roles {

// What to do if the ps are not (or no longer) there, or refuse this task.
enum class WhenGone : std::uint8_t {
  kGiveUp,  // throw, after the task's timeouts
  kGoOn     // retry forever; before the first snapshot, throw permanent errors
};

class SnapshotCollector {
 public:
  // Both must outlive it. Starts the thread.
  SnapshotCollector(const Task& task, StopSignal& stop, WhenGone when_gone = WhenGone::kGiveUp);
  ~SnapshotCollector();
  SnapshotCollector(const SnapshotCollector&) = delete;
  SnapshotCollector& operator=(const SnapshotCollector&) = delete;

  // Throws, through `stop` if no call is waiting: a signal's Failure; kLostPeers if the ps are
  // missing for --start_timeout, or lost for --peer_timeout; a ps's refusal.

  // Waits for the next snapshot. nullopt: the run is over, and its result is no longer available.
  [[nodiscard]] std::optional<TrainedModel> await_snapshot();
  // Waits until that time, or for the result.
  void wait_until(net::Deadline time);

  // Requests the next snapshot without waiting for it.
  void ask();
  // Returns what has arrived: a requested snapshot, or the result. It has no hash unless it is the
  // result.
  [[nodiscard]] std::optional<TrainedModel> take();
  // Returns whether nothing more arrives than what take() may still have.
  [[nodiscard]] bool is_over();
  // Returns why some ps are missing; empty: none are.
  [[nodiscard]] std::string why_gone();

 private:
  // All of these run on the thread.
  void work();
  bool find_config();
  [[nodiscard]] std::error_code ask_for_config(WatchLink& link);
  void take_config(const std::string& json);
  bool reach_all();
  bool listen();
  [[nodiscard]] bool all_have_spoken() const;
  bool receive(std::size_t ps);
  bool watch_all(std::uint64_t step);
  bool lose(std::size_t ps, const std::string& why);
  void leave_all();
  void begin_anew(const std::string& why);
  void report_gone(std::string why);
  void report_present();
  void deliver(bool is_result);
  void throw_if_gone(std::chrono::seconds limit) const;
  [[nodiscard]] math::Range range_of(std::size_t ps) const;
  [[nodiscard]] bool wants_snapshot();
  [[nodiscard]] bool is_ending();
  void over();

  const Task& task_;
  StopSignal& stop_;
  const WhenGone when_gone_;
  // Of the thread.
  net::Interrupt ends_;           // interrupted by the destructor
  std::vector<WatchLink> links_;  // by ps
  std::string config_json_;       // empty: unknown
  RunConfig config_;
  SnapshotPlan plan_;
  math::AlignedVector parameters_;    // of the snapshot in progress
  std::vector<net::Deadline> heard_;  // by ps, when
  std::vector<bool> has_spoken_;      // by ps: a frame has arrived since it was connected
  std::vector<bool> has_last_;        // by ps: its shard of the result is here
  bool waits_for_end_ = true;         // all ps are asked for the result
  net::Deadline gone_since_;          // since when some ps have been missing
  bool has_delivered_ = false;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool is_wanted_ = false;
  bool is_over_ = false;   // nothing more arrives
  bool is_there_ = false;  // all ps are connected
  std::string why_gone_;   // the reason, the last time that a ps was missing
  std::optional<TrainedModel> snapshot_;
  std::thread thread_;
};

}  // namespace disttf::roles
