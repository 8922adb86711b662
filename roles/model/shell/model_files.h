// Reading a trained model from the disk. Every byte is compared with its checksum.
// Callable from any thread.
#pragma once

#include <filesystem>

#include "roles/checkpoint/core/checkpoint_index.h"
#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// `path`: a checkpoint, or a directory of them, of which the newest whole one is taken, with a
// warning in the log for each newer one that is damaged. Throws Failure: kUsage where there is no
// such directory or nothing of that kind in it, kBadData where nothing in it is whole.
[[nodiscard]] TrainedModel read_model(const std::filesystem::path& path);

// Whether the run that has saved it had ended with it. Throws std::invalid_argument where its
// configuration is not one that this release reads.
[[nodiscard]] bool is_result_of_run(const CheckpointIndex& index);

// The one checkpoint in `path`, nothing else. Throws DamagedCheckpoint, std::system_error, and
// Failure(kUsage) where it is of another release.
[[nodiscard]] TrainedModel read_checkpoint_model(const std::filesystem::path& path);

}  // namespace disttf::roles
