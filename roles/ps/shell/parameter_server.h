// The ps role: owns one range of the parameter vector, applies gradients to it, and exits on its
// own.
//
//   waiting for the chief -> training -> finishing (SHUTDOWN received) -> exit 0
//   any of these -> failed: a peer was disconnected for too long       -> exit 138
//
// One thread runs everything: connections are coroutines on it, the shard is plain data, and there
// is no lock. (A second thread writes checkpoints, from copies that do not change.) For gradients
// see roles/ps/core/shard.h, for frames and timeouts roles/ps/core/range_replica.h.
#pragma once

#include <filesystem>

#include "run/task.h"

namespace disttf::roles {

// `train_dir`: where it writes its range of checkpoints if the chief requests that; may be empty.
// Returns the exit code. Throws Failure with the sentence of any other end.
int run_parameter_server(const Task& task, const std::filesystem::path& train_dir = {});

}  // namespace disttf::roles
