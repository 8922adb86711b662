// What the chief tells TensorBoard while it trains (roles/chief/shell/summary_writer.h). The
// computing thread takes numbers, and copies weights where histograms of them are due; what becomes
// of them is another thread's work. The way there is a queue that holds so many; when it is full
// numbers are dropped, and how many the log says at the end. Nothing is ever waited for.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "math/evaluation.h"
#include "math/parameter_layout.h"
#include "roles/run/run_config.h"
#include "roles/run/summary_options.h"

namespace disttf::roles {

// Of the test set, in the projector. More make the browser slow.
inline constexpr std::size_t kMostProjectorPoints = 500;

// Called by the computing thread alone.
class Summaries {
 public:
  // All but `options` must outlive it. Starts the thread. `ps`: how many there are.
  // REQUIRES: options.directory is not empty.
  Summaries(const SummaryOptions& options, const RunConfig& config,
            const math::ParameterLayout& layout, const data::Dataset& dataset, std::size_t ps);
  ~Summaries();  // what is in the queue is written
  Summaries(const Summaries&) = delete;
  Summaries& operator=(const Summaries&) = delete;

  // Before each step: the next one is made of the state of `step`. The first time, and where that
  // is an earlier one than the last, what was written of later steps holds no more.
  void goes_on_from(std::uint64_t step);

  // A step on the chief, which led to the state of `step`. Allocates nothing, unless it is the
  // last.
  struct MadeStep {
    std::uint64_t step = 0;
    float loss = 0;
    std::span<const float> parameters;
    std::span<const float> gradient;  // that the chief has pushed
    bool is_last = false;
  };
  void made(const MadeStep& made);

  // `gradient` counts where a step has been made.
  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, std::span<const float> parameters,
                 std::span<const float> gradient, bool is_last);
  // What the model has made of the first examples of the test set, [points, width] numbers, and
  // what they were judged to be.
  void project(std::vector<float> points, std::size_t width, std::vector<std::uint16_t> judged);
  void ended(bool is_success);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
