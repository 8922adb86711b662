// Writes a trained model as files of its variables, with the names and shapes that they have in
// disttf: safetensors, NumPy's .npz, and the format that read_model() reads.
//
// Pure functions; callable from any thread. They throw Failure(kUsage) with one sentence where a
// format cannot hold the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "data/file_system.h"
#include "data/safetensors.h"
#include "model/export/model_facts.h"
#include "model/trained_model.h"

namespace disttf::roles {

// One file; the metadata is its __metadata__. Refused if what comes before the weights has more
// than `most_header_bytes`.
[[nodiscard]] std::string safetensors_model(
    const TrainedModel& model, const ModelFacts& facts,
    std::size_t most_header_bytes = data::kMaxSafetensorsJsonBytes);

// An archive of arrays, "hid_w.npy", and the metadata, "disttf.json".
[[nodiscard]] std::string npz_model(const TrainedModel& model, const ModelFacts& facts);

// Name within the directory, and contents.
using DirectoryFiles = std::vector<std::pair<std::string, std::string>>;

// A checkpoint without optimizer state; its directory may have any name.
[[nodiscard]] DirectoryFiles disttf_model(const TrainedModel& model);

// Writes a model's files into a directory atomically: a reader finds all of them or none, also
// after a power cut.

// Writes the files into "NAME.disttf-MARK" beside the final name, syncs, renames. With `replaces`
// the existing directory is renamed first: for a moment the name does not exist. Throws
// std::system_error with a sentence that names a path, after restoring the existing directory.
void write_directory(data::FileSystem& files, const std::filesystem::path& directory,
                     const DirectoryFiles& contents, const std::string& mark, bool replaces);

}  // namespace disttf::roles
