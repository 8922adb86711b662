// A model file: the layers of a model in TOML, from first to last.
//
//   [[layer]]
//   type = "conv2d"
//   channels = 32
//   kernel = 5
//
//   [[layer]]
//   type = "dense"
//   units = 10
//   name = "sm"      # prefix of its variables; default: the type and a number
//
// math/layers/registry.h and docs/operations.md list the types and their fields. Only the task
// whose
// --model names the file reads it; the other tasks get the layers with the published configuration.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "math/layers/layer_spec.h"

namespace disttf {

// Whether the value of --model is a file rather than a name.
[[nodiscard]] bool is_model_file(std::string_view text) noexcept;

// The offset of the first line that begins with "[[", in bytes; the text's size if there is none.
// The text before the layers holds a recipe's flags (main/config_file.h), which the functions below
// skip.
[[nodiscard]] std::size_t begin_of_layers(std::string_view text) noexcept;

// What --model accepts, for messages: "softmax, mlp, lenet, cnn, or a model file, which ends in
// .toml".
[[nodiscard]] std::string model_choices();

// Checks that each layer's type exists and that its fields fit the type; whether the shapes fit
// depends on the data. Throws std::invalid_argument with one sentence: the file, the line, the
// layer, the field, its value, what is allowed.
[[nodiscard]] std::vector<math::LayerSpec> read_model_file(const std::string& path);
// The same from the file's text. `path` is for messages.
[[nodiscard]] std::vector<math::LayerSpec> layers_from_toml(std::string_view text,
                                                            const std::string& path);

}  // namespace disttf
