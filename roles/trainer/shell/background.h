// A trainer's second thread, for everything but the steps.
//
//  - Heartbeats to every ps on a control channel of its own, so that a ps can distinguish a trainer
//    that computes for a minute from one that is suspended or cut off.
//  - With the heartbeats, this trainer's metrics; at the chief, those of all tasks.
//  - The task's own port, which answers HELLO: a task that was given a wrong address gets a
//    sentence instead of no answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "run/monitor/core/step_sampling.h"
#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {

class Background {
 public:
  // Opens the port and starts the thread. `task` and `stop` must outlive it. Throws Failure if the
  // port is not available. If the thread fails, the task ends, through `stop`: without heartbeats a
  // trainer counts as dead.
  Background(const Task& task, StopSignal& stop);
  ~Background();  // ends the thread
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // The trainer has joined this generation of the run, which all ps hold. Heartbeats name it from
  // now on, also to a ps that counted as dead and was replaced, which learns of that this way.
  // After that the channels are opened again, since the name of a ps may resolve to another address
  // now.
  void set_generation(net::Generation generation);
  // This process has another incarnation than its task says: the channels are opened again with it.
  void set_incarnation(std::uint64_t incarnation);

  // Sets a function that is called on the background thread when a heartbeat of `generation` to
  // that ps has reached a process that holds nothing of it.
  void on_replaced(std::function<void(std::size_t ps, net::Generation generation)> callback);

  // Metrics of this trainer: the result of `text`, if not empty, is sent to ps 0 with each
  // heartbeat (net/wire/metrics_messages.h). `trace` is called with a window of steps to trace.
  // Both are called on the background thread.
  void tell(std::function<std::string()> text, std::function<void(const StepWindow&)> trace);
  // Chief: requests the metrics of each ps, and those that trainers have sent to it, with each
  // heartbeat. `callback` is called with the answer, on the background thread.
  using Callback = std::function<void(std::size_t ps, std::vector<std::string> texts)>;
  void collect(Callback callback);
  // Chief: sends all ps this window of steps to trace, with each heartbeat from now on. An empty
  // window ends that.
  void trace(const StepWindow& window);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
