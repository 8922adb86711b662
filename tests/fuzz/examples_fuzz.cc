// Inputs of a model: any bytes give rows that the model accepts, or one sentence. The first byte
// selects the model.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "data/own/row_source.h"
#include "model/predict/example_reader.h"
#include "tests/fuzz/input.h"

namespace {

using namespace disttf;
using disttf::fuzz::require;

roles::TrainedModel model_of(unsigned kind) {
  roles::TrainedModel model;
  model.config.model.numbers = kind % 2 == 0;
  model.config.model.input = {.height = 1, .width = kind % 2 == 0 ? 1U : 2U, .channels = 2};
  if (kind % 4 == 1) {
    model.config.model.input.channels = 1;
  }
  model.config.model.classes = 3;
  model.config.examples.classes = {"a", "b", "c"};
  model.config.examples.columns = {"x", "y"};
  model.config.examples.label = "l";
  return model;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const roles::TrainedModel model = model_of(data[0]);
  const std::size_t inputs = model.config.model.input.size();
  try {
    const roles::Examples read = roles::read_examples(std::span(data + 1, size - 1), "file", model);
    require((read.pixels.size() + read.numbers.size()) % inputs == 0);
    require(read.pixels.empty() || read.numbers.empty());
    require(!model.is_of_numbers() || read.pixels.empty());
    require(read.labels.empty() || read.labels.size() == read.rows(inputs));
    require(std::ranges::all_of(read.labels, [](std::size_t label) { return label < 3; }));
    require(std::ranges::all_of(read.numbers, [](float x) { return std::isfinite(x); }));
  } catch (const data::UnusableData& error) {
    const std::string_view sentence = error.what();
    require(sentence.starts_with("file") && sentence.size() < 2000);
    require(std::ranges::all_of(sentence, [](unsigned char c) { return c >= ' ' && c != 0x7F; }));
  }
  return 0;
}
