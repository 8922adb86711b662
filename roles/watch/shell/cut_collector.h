// Brings a task beside a run what the ps hold, one cut after the other, while it computes: of the
// step that is next when it wants one, and at last the result. A thread of its own listens to the
// ps, so that the result is taken the moment that a ps gives it away, which ends then; nobody waits
// for this task.
//
// At most one cut lies here, and one is under way.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "math/aligned.h"
#include "net/transport/interrupt.h"
#include "roles/model/core/trained_model.h"
#include "roles/process/stop_signal.h"
#include "roles/run/run_config.h"
#include "roles/run/task.h"
#include "roles/watch/core/cut_plan.h"
#include "roles/watch/shell/watch_link.h"

namespace disttf::roles {

// What becomes of it where the ps are not there (any more), or refuse it.
enum class WhenGone : std::uint8_t {
  kGiveUp,  // it throws, after the limits that the task has
  kGoOn     // it tries again, without an end; before the first cut it throws what no time mends
};

class CutCollector {
 public:
  // Both must outlive it. Starts the thread.
  CutCollector(const Task& task, StopSignal& stop, WhenGone when_gone = WhenGone::kGiveUp);
  ~CutCollector();
  CutCollector(const CutCollector&) = delete;
  CutCollector& operator=(const CutCollector&) = delete;

  // What is thrown, through `stop` where nobody waits here: a signal's Failure; kLostPeers where
  // the ps are not there for --start_timeout, or not any more for --peer_timeout; what a ps refuses
  // with.

  // Waits for the next one. nullopt: the run is over, and its result is not to be had any more.
  [[nodiscard]] std::optional<TrainedModel> await_cut();
  // Until then, or the result is here.
  void wait_until(net::Deadline time);

  // The same for who does not wait: the next one is to come.
  void ask();
  // What has come: one that was asked for, or the result. It has no hash yet where it is no result.
  [[nodiscard]] std::optional<TrainedModel> take();
  // Nothing more comes but what take() may still have.
  [[nodiscard]] bool is_over();
  // Why not all ps are there; empty: they are.
  [[nodiscard]] std::string why_gone();

 private:
  // All of these on the thread.
  void work();
  bool find_config();
  void take_config(const std::string& json);
  bool reach_all();
  bool listen();
  [[nodiscard]] bool all_have_spoken() const;
  bool receive(std::size_t ps);
  bool watch_all(std::uint64_t step);
  bool lose(std::size_t ps, const std::string& why);
  void leave_all();
  void begin_anew(const std::string& why);
  void tell_gone(std::string why);
  void tell_there();
  void deliver(bool is_result);
  void throw_if_gone(std::chrono::seconds limit) const;
  [[nodiscard]] math::Range range_of(std::size_t ps) const;
  [[nodiscard]] bool wants_cut();
  [[nodiscard]] bool is_ending();
  void over();

  const Task& task_;
  StopSignal& stop_;
  const WhenGone when_gone_;
  // The thread's.
  net::Interrupt ends_;           // this object does
  std::vector<WatchLink> links_;  // by ps
  std::string config_json_;       // empty: not known yet
  RunConfig config_;
  CutPlan plan_;
  math::AlignedVector parameters_;    // of the cut under way
  std::vector<net::Deadline> heard_;  // by ps, when
  std::vector<bool> has_spoken_;      // by ps: something has come since it was reached
  std::vector<bool> has_last_;        // by ps: its part of the result is here
  bool waits_for_end_ = true;         // that is what all ps are asked for
  net::Deadline gone_since_;          // they are not all there
  bool has_delivered_ = false;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool is_wanted_ = false;
  bool is_over_ = false;   // nothing more comes
  bool is_there_ = false;  // all ps are
  std::string why_gone_;   // were they not, the last time
  std::optional<TrainedModel> cut_;
  std::thread thread_;
};

}  // namespace disttf::roles
