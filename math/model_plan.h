// The execution plan of a model: its layers with the memory of their numbers, and the order in
// which threads pass their rows through them.
//
// Values, owned by the model (math/model.cc).
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
  std::uint32_t place = 0;           // position among all layers of the model
  std::vector<std::size_t> offsets;  // of its variables in the flat vector
  AlignedVector output;              // [max_batch, output]; none if it overwrites the input
  AlignedVector delta;               // gradient by it; none if shared with the output's
  AlignedVector kept;                // [max_batch, kept_floats()]
  AlignedVector shared;              // shared_floats()
  AlignedVector prepared;            // prepared_floats()
};

// Stages [begin, end) that process some rows together, `block` at a time. Without stages if the
// very first one measures the batch: then the batch itself is measured.
struct Segment {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t block = 0;
};

// Segments [begin, end) that a thread runs with its rows. Threads synchronise between two phases,
// because the first stage of the later phase measures the batch.
struct Phase {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct ModelPlan {
  std::vector<Stage> stages;
  std::vector<float*> outputs;  // address of each stage's output
  std::vector<float*> deltas;
  std::vector<Segment> segments;
  std::vector<Phase> phases;  // all segments; one phase if no stage measures

  // Whether the stage exists and measures the batch.
  [[nodiscard]] bool measures(std::size_t stage) const noexcept {
    return stage < stages.size() && stages[stage].shared.size() != 0;
  }
  // The first stage of a phase. REQUIRES: phase > 0.
  [[nodiscard]] std::size_t first_of(std::size_t phase) const noexcept {
    return segments[phases[phase].begin].begin;
  }
};
// `layout`: the model's. Throws as validate(spec) does.
[[nodiscard]] ModelPlan make_plan(const ModelSpec& spec, const ParameterLayout& layout,
                                  std::size_t max_batch);

}  // namespace disttf::math
