#include "math/model_plan.h"

#include <algorithm>
#include <utility>

namespace disttf::math {
namespace {

// Block size for layers that do not prefer large calls: the data of a few rows, which then fits
// into the second-level cache.
constexpr std::size_t kBlockFloats = std::size_t{64} * 1024;

void add_stages(ModelPlan& plan, const ModelSpec& spec, const ParameterLayout& layout,
                std::size_t max_batch) {
  std::size_t variable = 0;
  std::uint32_t place = 0;
  for (PlacedLayer& placed : make_layers(spec)) {
    const Layer& layer = *placed.layer;
    ++place;
    if (!layer.computes()) {
      continue;
    }
    // An in-place stage shares the memory of its predecessor. The first one has none: its input is
    // the batch, which must stay as it is.
    const bool is_first = plan.stages.empty();
    const bool has_delta = !layer.in_place() || is_first;
    // An output that the previous layer reads again must not be overwritten.
    const bool has_output = has_delta || plan.stages.back().layer->needs_output();
    Stage& stage = plan.stages.emplace_back();
    stage.place = place;
    for (std::size_t i = 0; i < layer.variables().size(); ++i) {
      stage.offsets.push_back(layout.variables()[variable++].offset);
    }
    stage.output = AlignedVector(has_output ? max_batch * layer.output().size() : 0);
    stage.delta = AlignedVector(has_delta ? max_batch * layer.output().size() : 0);
    stage.kept = AlignedVector(max_batch * layer.kept_floats());
    stage.shared = AlignedVector(layer.shared_floats());
    stage.prepared = AlignedVector(is_first ? 0 : layer.prepared_floats());
    plan.outputs.push_back(has_output ? stage.output.data() : plan.outputs.back());
    plan.deltas.push_back(has_delta ? stage.delta.data() : plan.deltas.back());
    // Moved last: `layer` refers to it until here.
    stage.layer = std::move(placed.layer);
  }
}

// The gradient by the logits overwrites these, unless they are needed.
void share_logits(ModelPlan& plan) {
  if (plan.stages.back().layer->needs_output()) {
    return;
  }
  float* const logits = plan.outputs.back();
  const float* const unused = plan.deltas.back();
  // In-place stages at the end share one delta, so all of them are redirected.
  for (std::size_t i = plan.stages.size(); i-- > 0 && plan.deltas[i] == unused;) {
    plan.deltas[i] = logits;
    plan.stages[i].delta = AlignedVector();
  }
}

void plan_segments(ModelPlan& plan, std::size_t max_batch) {
  std::vector<Segment>& segments = plan.segments;
  // The batch itself must be measured before the first stage runs: a phase of its own, without
  // stages.
  if (plan.measures(0)) {
    segments.push_back({.begin = 0, .end = 0, .block = max_batch});
    plan.phases.push_back({.begin = 0, .end = 1});
  }
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    const Layer& layer = *plan.stages[i].layer;
    const std::size_t floats =
        layer.input().size() + layer.output().size() + layer.kept_floats() + 1;
    // Rows are independent within a segment, so the size of a block changes no bit.
    const std::size_t block = std::clamp(kBlockFloats / floats, std::size_t{1}, max_batch);
    if (i == 0 || plan.measures(i)) {
      plan.phases.push_back({.begin = segments.size(), .end = 0});
    }
    const bool begins_phase = segments.size() == plan.phases.back().begin;
    if (layer.wants_many_rows()) {
      segments.push_back({.begin = i, .end = i + 1, .block = max_batch});
    } else if (begins_phase || plan.stages[segments.back().begin].layer->wants_many_rows()) {
      segments.push_back({.begin = i, .end = i + 1, .block = block});
    } else {
      segments.back().end = i + 1;
      // The widest layer of a segment decides how many of its rows fit.
      segments.back().block = std::min(segments.back().block, block);
    }
    plan.phases.back().end = segments.size();
  }
}

}  // namespace

ModelPlan make_plan(const ModelSpec& spec, const ParameterLayout& layout, std::size_t max_batch) {
  ModelPlan plan;
  add_stages(plan, spec, layout, max_batch);
  share_logits(plan);
  plan_segments(plan, max_batch);
  return plan;
}

}  // namespace disttf::math
