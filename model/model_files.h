// Reads a trained model from disk and verifies the checksum of every byte. Callable from any
// thread.
#pragma once

#include <filesystem>

#include "model/trained_model.h"
#include "storage/checkpoint/core/checkpoint_index.h"

namespace disttf::roles {

// `path`: a checkpoint, or a directory of them; then takes the newest whole one and logs a warning
// for each newer one that is damaged. Throws Failure: kUsage where the directory or a checkpoint in
// it is missing, kBadData where none is whole.
[[nodiscard]] TrainedModel read_model(const std::filesystem::path& path);

// Whether the run had ended when it saved this checkpoint. Throws std::invalid_argument if this
// release cannot read its configuration.
[[nodiscard]] bool is_result_of_run(const CheckpointIndex& index);

// Reads the one checkpoint at `path`. Throws DamagedCheckpoint, std::system_error, and
// Failure(kUsage) where it is of another release.
[[nodiscard]] TrainedModel read_checkpoint_model(const std::filesystem::path& path);

}  // namespace disttf::roles
