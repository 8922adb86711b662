// How a model computes: its layers with the memory of their numbers, and in which order threads go
// through them with their rows.
//
// Values; the model's (math/model.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "math/aligned.h"
#include "math/layers/layer.h"
#include "math/model_spec.h"
#include "math/parameter_layout.h"

namespace disttf::math {

// A layer that computes, with its numbers.
struct Stage {
  std::unique_ptr<const Layer> layer;
  std::uint32_t place = 0;           // among all layers of the model
  std::vector<std::size_t> offsets;  // of its variables in the flat vector
  AlignedVector output;    // [max_batch, output]; none where it is in the place of the input's
  AlignedVector delta;     // the loss by that; none where the output's takes its place
  AlignedVector kept;      // [max_batch, kept_floats()]
  AlignedVector shared;    // shared_floats()
  AlignedVector prepared;  // prepared_floats()
};

// Stages [begin, end) that go over some rows together, `block` at a time. Without stages where the
// first one of all measures the batch: the rows to be measured then are the batch itself.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t block = 0;
};

// Segments [begin, end) that a thread goes through with its rows. Between two phases threads wait
// for each other: the stage that the later one begins with measures the batch.
struct Phase {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct ModelPlan {
  std::vector<Stage> stages;
  std::vector<float*> outputs;  // by stage, where it lies
  std::vector<float*> deltas;
  std::vector<Segment> segments;
  std::vector<Phase> phases;  // all segments; one phase where no stage measures

  // Whether there is such a stage, and it does.
  [[nodiscard]] bool measures(std::size_t stage) const noexcept {
    return stage < stages.size() && stages[stage].shared.size() != 0;
  }
  // The stage that a phase begins with. REQUIRES: phase > 0.
  [[nodiscard]] std::size_t first_of(std::size_t phase) const noexcept {
    return segments[phases[phase].begin].begin;
  }
};
// `layout`: the model's. Throws as validate(spec) does.
[[nodiscard]] ModelPlan make_plan(const ModelSpec& spec, const ParameterLayout& layout,
                                  std::size_t max_batch);

}  // namespace disttf::math
