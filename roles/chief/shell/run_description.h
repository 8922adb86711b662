// What TensorBoard is told of a run before it has begun: its settings, and the model as a graph of
// which task computes what and which ps holds what.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "data/tensorboard/graph.h"
#include "data/tensorboard/hparams.h"
#include "math/parameter_layout.h"
#include "roles/run/run_config.h"

namespace disttf::roles {

// The published settings, but for the checksum of the data. The same columns for every run, so that
// runs can be compared.
[[nodiscard]] std::vector<data::HyperParameter> hyper_parameters(const RunConfig& config);

// A box for each layer, with its variables, each on the ps that hold it: one that lies on several
// is drawn in parts, "hid/hid_w/part_1". The layers are the trainers', and so is the gradient; of
// each ps there is an update of what it holds. `ps`: how many there are.
[[nodiscard]] std::vector<data::GraphNode> run_graph(const RunConfig& config,
                                                     const math::ParameterLayout& layout,
                                                     std::size_t ps);

}  // namespace disttf::roles
