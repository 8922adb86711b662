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

class CutCollector {
 public:
  // Both must outlive it. Starts the thread.
  CutCollector(const Task& task, StopSignal& stop);
  ~CutCollector();
  CutCollector(const CutCollector&) = delete;
  CutCollector& operator=(const CutCollector&) = delete;

  // Both throw Failure: a signal's; kLostPeers where the ps are not there for --start_timeout, or
  // not any more for --peer_timeout; what a ps refuses with.

  // Waits for the next one. nullopt: the run is over, and its result is not to be had any more.
  [[nodiscard]] std::optional<TrainedModel> await_cut();
  // Until then, or the result is here.
  void wait_until(net::Deadline time);

 private:
  // All of these on the thread.
  void work();
  bool find_config();
  void take_config(const std::string& json);
  bool reach_all();
  void listen();
  bool receive(std::size_t ps);
  bool watch_all(std::uint64_t step);
  bool lose(std::size_t ps, const std::string& why);
  void deliver(bool is_result);
  void throw_if_gone(std::chrono::seconds limit) const;
  [[nodiscard]] math::Range range_of(std::size_t ps) const;
  [[nodiscard]] bool wants_cut();
  [[nodiscard]] bool is_ending();
  void over();

  const Task& task_;
  StopSignal& stop_;
  // The thread's.
  net::Interrupt ends_;           // this object does
  std::vector<WatchLink> links_;  // by ps
  std::string config_json_;       // empty: not known yet
  RunConfig config_;
  CutPlan plan_;
  math::AlignedVector parameters_;    // of the cut under way
  std::vector<net::Deadline> heard_;  // by ps, when
  std::vector<bool> has_last_;        // by ps: its part of the result is here
  bool waits_for_end_ = true;         // that is what all ps are asked for
  net::Deadline gone_since_;          // they are not all there
  std::string why_gone_;

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool is_wanted_ = false;
  bool is_over_ = false;  // nothing more comes
  std::optional<TrainedModel> cut_;
  std::thread thread_;
};

}  // namespace disttf::roles
