// An imported file: any bytes give a model, or one sentence.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "model/import/import_model.h"
#include "tests/fuzz/input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace disttf;
  using disttf::fuzz::require;
  try {
    const roles::ImportedModel read = roles::import_model({data, size}, "file", {});
    const math::ParameterLayout layout = math::layout_of(read.model.config.model);
    require(read.model.parameters.size() == layout.size());
    require(read.model.weights_sha256.size() == 64);
    require(!roles::to_model_file(math::layers_of(read.model.config.model)).empty());
  } catch (const std::invalid_argument& error) {
    const std::string_view sentence = error.what();
    require(sentence.starts_with("file") || sentence.starts_with("--"));
    require(sentence.size() < 4000);
    require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
  }
  return 0;
}
