// A simulated worker: the real cores, with what the real shell does, in virtual time. The chief
// extends it: tests/sim/chief_process.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "roles/trainer/core/stepper.h"
#include "tests/sim/own_program.h"
#include "tests/sim/program_link.h"
#include "tests/sim/session.h"

namespace disttf::sim {

// The speed of trainers, in virtual time.
struct Pace {
  std::uint64_t compute_us = 500;  // about, for a gradient
  std::uint64_t slow_one_in = 0;   // one gradient in so many takes twenty seconds; 0: none
  std::uint64_t load_ms = 10;      // time before a process is ready to train
  // The number of a step's gradients for which the trainer shares memory with the ps: the ps read
  // gradients there, and the trainer reads parameters in the ps's memory. 0: all are sent.
  std::size_t gradients_in_memory = 0;
};

// As roles/trainer/shell/worker.cc, trainer.cc and background.cc, with simulated gradients.
class WorkerProcess : public TrainerProcess {
 public:
  WorkerProcess(World& world, Network& network, Checks& checks, const roles::RunConfig& config,
                const Pace& pace, roles::Task task, std::size_t node, std::size_t size,
                OnEnd on_end);

  void start() override;
  void terminate() override;
  // Its gradients come from a program, of this supervisor. REQUIRES: it has not started.
  void set_program(std::unique_ptr<OwnProgram> own, const ProgramOptions& options);
  // nullptr: it has none.
  [[nodiscard]] OwnProgram* own_program() const noexcept { return own_program_.get(); }
  // Another trainer of its host has changed the host group.
  void record_host();

 protected:
  virtual Routine<void> live(Fiber& fiber);
  // Returns true if the run is over.
  Routine<bool> connect(Fiber& fiber);
  Routine<void> train(Fiber& fiber);
  void print_result(bool is_chief);

  // --- with a program
  // Waits for its variables, and welcomes it. As ProgramSource::prepare().
  Routine<void> await_program(Fiber& fiber);
  // Of parameters_.
  Routine<math::Evaluation> evaluate_by_program(Fiber& fiber, std::uint64_t step);
  // The run is over with parameters_. Does nothing without a program.
  Routine<void> end_program(Fiber& fiber);

  // Returns whether a copy of the state of that step is wanted; the caller then requests one.
  [[nodiscard]] virtual bool wants_snapshot(std::uint64_t /*step*/) { return false; }
  virtual void took_snapshot(std::uint64_t /*sequence*/) {}
  // Returns whether the parameters of the last reply are the run's result.
  [[nodiscard]] virtual Routine<bool> ends_here(Fiber& fiber);
  void set_generation(net::Generation generation) override;
  void took_incarnation() override;

  const Pace pace_;
  const std::size_t rank_;
  roles::Stepper stepper_;
  roles::StepResult reply_;
  Fiber* living_ = nullptr;
  std::optional<ProgramLink> link_;
  Values initial_;  // chief: that its program has given

 private:
  // A control channel to a ps.
  struct Beat {
    Channel channel;
    bool is_welcomed = false;
  };
  Routine<void> beat(Fiber& fiber, std::size_t index);
  Routine<void> compute(Fiber& fiber, Checks::Components components);
  Routine<void> await_packets(Fiber& fiber);
  Routine<void> ask_initial(Fiber& fiber);
  Routine<roles::ProgramAnswer> ask_program(Fiber& fiber, roles::ProgramRequest request);
  Routine<void> compute_by_program(Fiber& fiber, const Checks::Components& components,
                                   Values& gradient);
  // Returns the memory in which the next gradient of a step is computed.
  [[nodiscard]] std::shared_ptr<Values> place_of_gradient();
  Routine<void> take_step(Fiber& fiber);
  Routine<void> end_here(Fiber& fiber);
  Routine<void> push_pull(Fiber& fiber, bool keep_snapshot);
  Routine<void> take_elastic_step(Fiber& fiber, bool keep_snapshot);
  Routine<bool> leave(Fiber& fiber);
  Routine<bool> has_result(Fiber& fiber);
  [[nodiscard]] std::vector<StateName> states_now() const;

  std::vector<std::unique_ptr<Beat>> beats_;
  std::vector<Fiber*> beating_;
  net::Generation generation_ = 0;
  std::uint64_t computed_ = 0;
  std::vector<std::shared_ptr<Values>> memory_;  // shared with the ps, for gradients
  std::size_t pushed_ = 0;                       // elastic: gradients of this step
  Values next_parameters_;  // elastic: received while further gradients are computed
  Values kept_result_;
  std::vector<StateName> kept_states_;  // of kept_result_
  std::unique_ptr<OwnProgram> own_program_;
};

}  // namespace disttf::sim
