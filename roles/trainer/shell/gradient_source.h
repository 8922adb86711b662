// Where a trainer's gradients come from: a built-in model and a data set
// (roles/trainer/shell/built_in_source.h), or a user's own program
// (roles/trainer/shell/program_source.h).
//
// The calls, in order: complete() on the chief, or adopt() on a worker; prepare(); then load(),
// expect(), gradient() for each batch, with evaluate() between any two steps; end(). A run whose
// configuration changes begins with begin_anew(). Calls that wait for something throw Failure on a
// signal. Not thread-safe: the computing thread owns it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "math/evaluation.h"
#include "math/model.h"
#include "math/parameter_layout.h"
#include "roles/trainer/core/stepper.h"
#include "roles/trainer/shell/run_evaluation.h"
#include "roles/trainer/shell/stage_clock.h"
#include "run/process/stop_signal.h"
#include "run/run_config.h"

namespace disttf::data {
struct Dataset;  // data/dataset.h
}

namespace disttf::roles {

class BuiltInSource;

class GradientSource {
 public:
  using Batch = Stepper::Batch;

  GradientSource() = default;
  GradientSource(const GradientSource&) = delete;
  GradientSource& operator=(const GradientSource&) = delete;
  virtual ~GradientSource() = default;

  // Chief: returns `config` with what this source decides: the data, and the model that fits them.
  // Throws Failure if the rest of it does not fit.
  [[nodiscard]] virtual RunConfig complete(const RunConfig& config) = 0;
  // Worker: throws Failure if this source does not fit the run that the chief has published.
  virtual void adopt(const RunConfig& published) = 0;
  // The run has another configuration, which prepare() will get.
  virtual void begin_anew() = 0;

  // Gets ready for batches of this run. May throw std::bad_alloc.
  virtual void prepare(const RunConfig& config) = 0;
  // Of the run. REQUIRES: prepare().
  [[nodiscard]] virtual const math::ParameterLayout& layout() const = 0;
  // Chief: the run's first parameters; `parameters` are zero before.
  virtual void initialize(std::span<float> parameters) = 0;

  // Makes `batch` the one that gradient() computes, unless it is already. May be called while the
  // ps work, with the batch that is likely to be next.
  virtual void load(const Batch& batch) = 0;
  // That one is likely to be the next.
  virtual void expect(const Batch& batch) = 0;
  // Returns the mean loss over the batch that was loaded, and writes its gradient to `gradient`.
  // Both: layout().size() floats, 64-byte aligned. `on_ready`: see Model::gradient_of_batch(); may
  // be ignored. Marks the stages that it knows.
  virtual float gradient(std::span<const float> parameters, std::span<float> gradient,
                         const math::Model::OnReady& on_ready, StageClock& stages) = 0;

  // What the program told with that gradient; a built-in model tells nothing.
  [[nodiscard]] virtual std::span<const math::ToldNumber> numbers() const noexcept = 0;

  // Whether evaluate() says anything on this trainer.
  [[nodiscard]] virtual bool evaluates() const = 0;
  // The parameters are those of `step`. Replaces the loaded batch.
  [[nodiscard]] virtual SetEvaluations evaluate(std::uint64_t step,
                                                std::span<const float> parameters) = 0;
  // Why there is no result, if training has diverged, see why_no_result().
  [[nodiscard]] virtual std::optional<Failure> judge(std::uint64_t step,
                                                     const SetEvaluations& found) const = 0;

  // The name in the result line: "MNIST".
  [[nodiscard]] virtual std::string_view name() const = 0;
  // Of the classes, in the order of their numbers; empty: none, or their numbers.
  [[nodiscard]] virtual std::span<const std::string_view> class_names() const = 0;
  // What the bits of a program's gradients depend on; empty: unknown, or it is none. Callable from
  // any thread.
  [[nodiscard]] virtual std::map<std::string, std::string> fingerprint() const { return {}; }
  // How many programs this process has had, one after the other.
  [[nodiscard]] virtual std::uint64_t programs() const noexcept { return 0; }
  // For what only a built-in model has: pictures, embeddings. nullptr: it is a program.
  [[nodiscard]] virtual BuiltInSource* built_in() noexcept = 0;

  // The run is over with these parameters.
  virtual void end(std::uint64_t step, std::span<const float> parameters) = 0;
};

}  // namespace disttf::roles
