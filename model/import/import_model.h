// Converts another program's model, or an exported one, into the initial state of a run.
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "math/shape.h"
#include "model/import/image_layout.h"
#include "model/trained_model.h"

namespace disttf::roles {

// Options from the command line.
struct ImportWishes {
  RunConfig config = {};     // of the run that continues from the import
  bool names_model = false;  // config.model was given, not defaulted
  std::optional<math::Shape> input = std::nullopt;
  std::optional<ImageLayout> layout = std::nullopt;  // of an ONNX file's input
  std::optional<std::size_t> classes = std::nullopt;
  // Called before memory is taken that a compressed file claims; throws if there is less.
  std::function<void(std::uint64_t bytes)> require_memory = {};
};

struct ImportedModel {
  TrainedModel model = {};              // step 0
  bool has_layers = false;              // read from the file; they have no model name
  std::vector<std::string> notes = {};  // sentences, for warnings
};

// `where`: the file's name. Throws std::invalid_argument with one sentence.
[[nodiscard]] ImportedModel import_model(std::span<const std::uint8_t> bytes,
                                         const std::string& where, const ImportWishes& wishes);

// The layers in the format of a model file (--model).
[[nodiscard]] std::string to_model_file(const std::vector<math::LayerSpec>& layers);

}  // namespace disttf::roles
