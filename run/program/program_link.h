// A task's connection to its program and to the supervisor that starts both: sockets, memory and
// clock for the decisions of run/program/program_session.h.
//
// Every call that waits is ended by a signal (the Failure of StopSignal), and throws Failure if the
// program fails or sends what the protocol does not allow. Not thread-safe: the computing thread
// owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "net/memory/program_channel.h"
#include "net/waiting/descriptor.h"
#include "net/waiting/interrupt.h"
#include "run/process/stop_signal.h"
#include "run/program/program_session.h"

namespace disttf::roles {

class ProgramLink {
 public:
  // `supervisor`: the socket to it, owned from now on. `timeout`: see ProgramSession.
  ProgramLink(int supervisor, const StopSignal& stop, std::chrono::seconds timeout);

  // Waits until the program has told its variables.
  void await_layout();
  // What it has told. REQUIRES: await_layout().
  [[nodiscard]] const ProgramHello& hello() const noexcept { return session_.hello(); }
  [[nodiscard]] const std::vector<math::Variable>& variables() const noexcept {
    return session_.variables();
  }

  // The number of the newest program, from 1 on.
  [[nodiscard]] std::uint64_t programs() const noexcept { return programs_; }

  // Fills `rows`, one for each row of a batch, with row numbers below `count`.
  using RowsOf = std::function<void(std::uint64_t step, std::uint64_t slot, std::uint64_t count,
                                    std::span<std::uint32_t> rows)>;
  // The run is known: makes the memory for vectors of `size` floats, and welcomes the program with
  // `text`. `batch_size`: rows of a batch.
  void welcome(std::string text, std::size_t size, std::size_t batch_size, RowsOf rows_of);

  // The run has another configuration; welcome() follows.
  void restart();

  // What the program reads, and what it writes: [size] each. Written and read by this task while
  // nothing is asked.
  [[nodiscard]] std::span<float> parameters() const noexcept { return parameters_.floats(); }
  [[nodiscard]] std::span<float> gradient() const noexcept { return gradient_.floats(); }

  // Asks, and waits for the answer. A program that dies meanwhile is replaced by the supervisor,
  // and the next one is asked. REQUIRES: welcome().
  const ProgramAnswer& ask(const ProgramRequest& request);
  // The run is over with the parameters() of this step. The program goes on by itself. If it was
  // killed, waits until the next one has received END.
  void end(std::uint64_t step) noexcept;
  // The task is about to fail: tells the program, so that it ends with the same sentence.
  void refuse(int exit_code, const std::string& sentence) noexcept;

 private:
  void wait(const std::function<bool()>& is_done);
  bool wait_for_some(net::FreezeWatch& watch, net::Deadline until);
  void take_from_supervisor();
  void take_from_program(bool is_closed);
  void send_unsent();
  void perform();
  void apply(const SendToProgram& effect);
  void apply(const SendToSupervisor& effect) const;
  void apply(const RowsAsked& effect);
  static void apply(const ProgramNote& effect);
  void send(const ProgramMessage& message, std::span<const std::byte> body,
            std::span<const int> descriptors = {});

  const StopSignal& stop_;
  net::Descriptor supervisor_;
  net::Descriptor program_;  // not open: there is none
  std::uint64_t programs_ = 0;
  // Packets for it that its socket has no room for. Nothing is read from it meanwhile, so that one
  // that asks and does not read makes no more of them.
  std::deque<std::vector<std::byte>> unsent_;
  ProgramSession session_;
  net::ProgramMemory parameters_;
  net::ProgramMemory gradient_;
  RowsOf rows_of_;
  std::vector<std::uint32_t> batch_;  // row numbers; reused
  std::vector<std::byte> packet_;     // what came last
  std::vector<net::Descriptor> descriptors_;
};

}  // namespace disttf::roles
