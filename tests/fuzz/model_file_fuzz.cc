// layers_from_toml: any text gives layers of existing types, or one short sentence that begins with
// the flag and fits on one line.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "main/model_file.h"
#include "math/layers/registry.h"
#include "math/model_spec.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const auto layers = disttf::layers_from_toml(text, "m.toml");
    disttf::fuzz::require(layers.size() <= disttf::math::kMaxLayers);
    for (const auto& layer : layers) {
      disttf::fuzz::require(disttf::math::find_layer_type(layer.type) != nullptr);
    }
  } catch (const std::invalid_argument& error) {
    disttf::fuzz::require_sentence(error.what(), "--model: m.toml", 1000);
  }
  return 0;
}
