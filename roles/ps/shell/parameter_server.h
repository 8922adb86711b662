// The ps role: owns one range of the parameter vector, applies gradients to it, and ends by itself.
//
//   waiting for the chief -> training -> finishing (the chief said shutdown) -> exit 0
//             any of these -> failed: a peer was gone for too long          -> exit 138
//
// One thread runs everything: connections are coroutines on it, the shard is plain data, there is
// no lock. (A second one writes checkpoints, from copies that do not change.) What happens to
// gradients is roles/ps/core/shard.h; who may say what and when, and who has been silent for how
// long, is roles/ps/core/range_replica.h.
#pragma once

#include <filesystem>

#include "roles/run/task.h"

namespace disttf::roles {

// `train_dir`: where it writes its range of checkpoints if the chief asks it to; may be empty.
// Returns the exit code. Throws Failure with the sentence of any other end.
int run_parameter_server(const Task& task, const std::filesystem::path& train_dir = {});

}  // namespace disttf::roles
