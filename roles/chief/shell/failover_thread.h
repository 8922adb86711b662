// With --ps_replicas 2: the chief's thread for the sockets of the failover controller
// (roles/chief/core/failover_controller.h), which watches both hosts of every range and sends them
// their views.
//
// It has channels of its own, so that neither a long gradient nor a reply that waits for a lost
// host delays it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "net/waiting/interrupt.h"
#include "roles/trainer/shell/ps_client.h"
#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {

class FailoverThread {
 public:
  // Starts the thread, for a chief with this incarnation. `task`, `client` and `stop` must outlive
  // it. If the thread, or the watch over one host, fails, the task ends, through `stop`: a lost
  // primary would not be replaced otherwise. Until settle() `client` is notified when a host has
  // recorded another process as the chief, which need not be a later one; if it is later, the task
  // ends.
  FailoverThread(const Task& task, std::uint64_t incarnation, PsClient& client, StopSignal& stop);
  ~FailoverThread();  // ends the thread
  FailoverThread(const FailoverThread&) = delete;
  FailoverThread& operator=(const FailoverThread&) = delete;

  struct Found {
    std::uint64_t replaced_by = 0;  // not 0: incarnation of another chief that a host has recorded
    bool is_run_over = false;       // a host has reported this
  };
  // Waits until every range has a primary, or a host reports that none is needed, or for `limit`: a
  // task that connects earlier is redirected.
  [[nodiscard]] Found await_views(std::chrono::milliseconds limit);
  // From now on another process that a host has recorded as the chief counts as a later one.
  void settle();
  // The run is over: notifies every host that has not ended, including those that come back before
  // `deadline`.
  void finish(net::Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
