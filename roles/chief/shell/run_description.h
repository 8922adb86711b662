// The description of a run for TensorBoard before it begins: its settings, and the model as a graph
// of the tasks that compute it and the ps that hold it.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <vector>

#include "data/tensorboard/events.h"
#include "math/parameter_layout.h"
#include "run/run_config.h"

namespace disttf::roles {

// Returns the published settings, except the checksum of the data. Every run has the same columns,
// so that runs can be compared.
[[nodiscard]] std::vector<data::HyperParameter> hyper_parameters(const RunConfig& config);

// Returns a box for each layer, with its variables, each on the ps that hold it; a variable on
// several ps is drawn in parts, "hid/hid_w/part_1". The layers and the gradient are the trainers',
// and each ps has an update of what it holds. `ps`: the number of ps.
[[nodiscard]] std::vector<data::GraphNode> run_graph(const RunConfig& config,
                                                     const math::ParameterLayout& layout,
                                                     std::size_t ps);

}  // namespace disttf::roles
