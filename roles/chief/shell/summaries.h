// What the chief reports to TensorBoard while it trains (roles/chief/shell/summary_writer.h). The
// computing thread takes numbers, and copies weights if histograms of them are due; another thread
// does the rest. They communicate over a bounded queue; when it is full, numbers are dropped, and
// the log reports how many at the end. The computing thread never waits.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "math/evaluation.h"
#include "math/parameter_layout.h"
#include "run/output_options.h"
#include "run/run_config.h"

namespace disttf::roles {

// Of the test set, in the projector. More would make the browser slow.
inline constexpr std::size_t kMostProjectorPoints = 500;

// Called by the computing thread only.
class Summaries {
 public:
  // All but `options` must outlive it. Starts the thread. `ps`: the number of ps. REQUIRES:
  // options.directory is not empty.
  Summaries(const SummaryOptions& options, const RunConfig& config,
            const math::ParameterLayout& layout, const data::Dataset& dataset, std::size_t ps);
  ~Summaries();  // writes what is in the queue
  Summaries(const Summaries&) = delete;
  Summaries& operator=(const Summaries&) = delete;

  // To be called before each step, which starts from the state of `step`. On the first call, and if
  // that state is older than the last one, events written for later steps become invalid.
  void goes_on_from(std::uint64_t step);

  // A step on the chief, which led to the state of `step`. Allocates nothing, except for the last
  // step and for numbers.
  struct MadeStep {
    std::uint64_t step = 0;
    float loss = 0;
    std::span<const math::ToldNumber> numbers{};  // of a user's program
    std::span<const float> parameters;
    std::span<const float> gradient;  // pushed by the chief
    bool is_last = false;
  };
  void made(const MadeStep& made);

  // `gradient` counts only if a step has been made.
  void evaluated(std::uint64_t step, const math::Evaluation& validation,
                 const math::Evaluation& test, std::span<const float> parameters,
                 std::span<const float> gradient, bool is_last);
  // The inputs of the last layer for the first examples of the test set, [points, width], and the
  // classes predicted for them.
  void project(std::vector<float> points, std::size_t width, std::vector<std::uint16_t> judged);
  void ended(bool is_success);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace disttf::roles
