// TF_CONFIG: the JSON in which orchestrators give a task the cluster and its own job and index.
//
//   {"cluster": {"chief": ["c:1"], "ps": ["p:1"], "worker": ["w0:1", "w1:1"]},
//    "task": {"type": "worker", "index": 1}, "environment": "cloud"}
//
// Rules, more lenient than TensorFlow's where its users had problems:
//   - `cluster` or `sparseCluster` (Kubeflow up to 1.6); other top-level keys are ignored.
//   - Job names and task.type in any letter case; "master" is chief. Unknown jobs are ignored
//     with a warning.
//   - Each job is a list of addresses, or a map from index to address. A map may leave workers
//     out (Cluster::sparse); every ps, chief and evaluator must be there.
//   - task.index is an integer or a decimal string; without it, 0.
//   - An evaluator need not be listed in the cluster.
//   - No cluster, `{}`, an empty text, or one lone trainer: not distributed, train locally.
//   - Kubeflow's enableDynamicWorker hides the number of tasks from a ps (its own address only,
//     whatever its index) and from a chief (empty lists). disttf needs that number, so both get an
//     error; a worker of such a job has all it needs and is accepted.
//
// Pure function; callable from any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "net/wire/cluster.h"

namespace disttf::net {

// Limits the index in a sparse map. A larger one is a mistake, and would allocate the whole gap.
inline constexpr std::size_t kMaxTaskIndex = 9999;

// std::nullopt: it contains no cluster, so train locally. Throws std::invalid_argument with one
// sentence: which part ("TF_CONFIG.task.index"), the value, what is allowed.
[[nodiscard]] std::optional<ClusterAndTask> parse_tf_config(std::string_view json);

}  // namespace disttf::net
