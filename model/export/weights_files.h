// Writes a trained model as files of its variables, with the names and shapes that they have in
// disttf: safetensors, NumPy's .npz, and the format that read_model() reads.
//
// Pure functions; callable from any thread. They throw Failure(kUsage) with one sentence where a
// format cannot hold the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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

}  // namespace disttf::roles
