// A model of somebody else's, or one that was exported, as the state that a run begins with.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/shape.h"
#include "roles/import/core/image_layout.h"
#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// What was said on the command line.
struct ImportWishes {
  RunConfig config = {};     // of the run that goes on from there
  bool names_model = false;  // config.model is what was asked for, and not the default
  std::optional<math::Shape> input = std::nullopt;
  std::optional<ImageLayout> layout = std::nullopt;  // of an ONNX file's input
  std::optional<std::size_t> classes = std::nullopt;
};

struct ImportedModel {
  TrainedModel model = {};              // step 0
  bool has_layers = false;              // which were read from the file, and have no name
  std::vector<std::string> notes = {};  // sentences, for warnings
};

// `where`: the file's name. Throws std::invalid_argument with one sentence.
[[nodiscard]] ImportedModel import_model(std::span<const std::uint8_t> bytes,
                                         const std::string& where, const ImportWishes& wishes);

// The layers as a model file has them, which is what --model takes.
[[nodiscard]] std::string to_model_file(const std::vector<math::LayerSpec>& layers);

}  // namespace disttf::roles
