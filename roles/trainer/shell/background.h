// A trainer's second thread: everything that is not the step.
//
//   - heartbeats to every ps on a control channel of its own, so that a ps can tell a trainer that
//     computes for a minute from one that is frozen or cut off;
//   - with them, how this trainer does; of the chief, what all tasks tell;
//   - the task's own port, which answers HELLO: whoever was given a wrong address learns so by a
//     sentence instead of waiting for nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/wire/generation.h"
#include "roles/monitor/core/step_sampling.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"

namespace disttf::roles {

class Background {
 public:
  // Opens the port and starts the thread. `task` and `stop` must outlive it. Throws Failure when
  // the port cannot be had. What ends the thread too early ends the task, through `stop`: without
  // its heartbeats a trainer is taken for dead.
  Background(const Task& task, StopSignal& stop);
  ~Background();  // ends the thread
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // The trainer has joined this generation of the run, which all ps hold. Heartbeats say so from
  // now on: to a ps that was taken for dead and replaced, too, which learns so that it was. After
  // that the channels are opened anew, since the name of a ps may mean another address now.
  void set_generation(net::Generation generation);
  // This process has another incarnation than its task says: the channels are opened anew in it.
  void set_incarnation(std::uint64_t incarnation);

  // A ps's address has led a heartbeat of `generation` to a process that holds nothing of it:
  // called on the background thread.
  void on_replaced(std::function<void(std::size_t ps, net::Generation generation)> hear);

  // How this trainer does: what `text` returns goes to ps 0 with a heartbeat, where it is not empty
  // (net/wire/metrics_messages.h). `trace`: all of these steps are to be told. Both are called on
  // the background thread.
  void tell(std::function<std::string()> text, std::function<void(const StepWindow&)> trace);
  // Chief: each ps is asked with each heartbeat how it does, and what the trainers have told it;
  // `hear` is called with what it answers, on the background thread.
  using Hear = std::function<void(std::size_t ps, std::vector<std::string> texts)>;
  void collect(Hear hear);
  // Chief: with each heartbeat from now on, all are told to tell all of these steps. Of none: no
  // more.
  void trace(const StepWindow& window);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
