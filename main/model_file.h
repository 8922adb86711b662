// A model file: the layers of a model, in TOML, from the first to the last.
//
//   [[layer]]
//   type = "conv2d"
//   channels = 32
//   kernel = 5
//
//   [[layer]]
//   type = "dense"
//   units = 10
//   name = "sm"      # what its variables are called by; else the type and which one it is
//
// Which types there are, and which fields each has: math/layers/registry.h and docs/training.md.
// The file is read where --model names it, on the command line; to all other tasks the layers go
// with the published configuration.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "math/layers/layer_spec.h"

namespace disttf {

// Whether the value of --model is a file and not a name.
[[nodiscard]] bool is_model_file(std::string_view text) noexcept;

// Where the first line that begins with "[[" does, in bytes; the text's size where there is none.
// What stands before the layers are a recipe's flags (main/config_file.h), which the functions
// below pass over.
[[nodiscard]] std::size_t begin_of_layers(std::string_view text) noexcept;

// What --model takes, for sentences: "softmax, mlp, lenet, cnn, or a model file, which ends in
// .toml".
[[nodiscard]] std::string model_choices();

// Each layer has a type that there is, and fields as that type has them; whether the shapes fit is
// not known before the data is. Throws std::invalid_argument with one sentence: the file, the line,
// the layer, the field, its value, what is allowed.
[[nodiscard]] std::vector<math::LayerSpec> read_model_file(const std::string& path);
// The same from the file's text. `path`: for the sentences.
[[nodiscard]] std::vector<math::LayerSpec> layers_from_toml(std::string_view text,
                                                            const std::string& path);

}  // namespace disttf
