// The chief's other thread, with --ps_replicas 2: the sockets of the failover controller
// (roles/chief/core/failover_controller.h), which watches both hosts of every range and tells them
// which of them is the primary.
//
// It has channels of its own, so that neither a long gradient nor a reply that waits for a host
// that is gone keeps it from noticing.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "net/transport/interrupt.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"
#include "roles/trainer/shell/ps_client.h"

namespace disttf::roles {

class FailoverThread {
 public:
  // Starts the thread, of a chief with this incarnation. `task`, `client` and `stop` must outlive
  // it. What ends the thread, or the watch over one host, too early ends the task, through `stop`:
  // nobody would replace a primary that is lost. Until settle() `client` is told whenever a host
  // takes another process for the chief, which need not have come later; where it has, the task
  // ends.
  FailoverThread(const Task& task, std::uint64_t incarnation, PsClient& client, StopSignal& stop);
  ~FailoverThread();  // ends the thread
  FailoverThread(const FailoverThread&) = delete;
  FailoverThread& operator=(const FailoverThread&) = delete;

  struct Found {
    std::uint64_t replaced_by = 0;  // not 0: a host knows of another chief with that incarnation
    bool is_run_over = false;       // a host says so
  };
  // Until every range has a primary, or a host says that there is no need of one, or `limit` is
  // over: who connects before is turned away.
  [[nodiscard]] Found await_views(std::chrono::milliseconds limit);
  // From now on whoever is the chief in this one's place has come later, wherever that is heard.
  void settle();
  // The run is over: tells every host that has not ended, those that come back before `deadline`
  // too.
  void finish(net::Deadline deadline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
