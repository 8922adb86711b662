// Usage: math_gradient_files DIRECTORY
//
// Writes models with their gradients, for torch_gradient.py to recompute. NAME.json describes the
// layers of a model and the positions of its variables. NAME.ARRAY.npy are NumPy arrays: the
// parameters, the batch before conversion to the first layer's numbers, the labels or targets, and
// the resulting gradient on this machine's best instruction set.
#include <cstdio>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "math/losses/registry.h"
#include "math/model.h"
#include "tests/math/made_up.h"

namespace disttf::math {
namespace {

struct NamedModel {
  std::string name;
  ModelSpec spec;
  std::size_t rows;  // of the batch
  float scale =
      0.2F;  // of the parameters: neither are all units alike, nor any far from the others
};

LayerSpec layer(std::string type, std::map<std::string, LayerValue, std::less<>> fields = {}) {
  return {.type = std::move(type), .name = {}, .fields = std::move(fields)};
}

// Dropout draws from disttf's own generator, which PyTorch cannot reproduce.
ModelSpec without_dropout(ModelKind kind) {
  ModelSpec spec{.kind = kind};
  spec.layers = layers_of(spec);
  std::erase_if(spec.layers, [](const LayerSpec& each) { return each.type == "dropout"; });
  return spec;
}

// Asymmetric padding, overlapping windows, and images that are not square.
ModelSpec normalized(LossKind loss) {
  return {.input = {.height = 14, .width = 11, .channels = 3},
          .classes = 5,
          .loss = loss,
          .layers = {layer("conv2d", {{"channels", 8.0}, {"kernel", 3.0}, {"stride", 2.0}}),
                     layer("batch_norm", {{"epsilon", 0.01}}), layer("tanh"),
                     layer("average_pool", {{"size", 2.0}, {"stride", 1.0}}),
                     layer("conv2d", {{"channels", 7.0}, {"kernel", 4.0}}), layer("sigmoid"),
                     layer("max_pool", {{"size", 3.0}, {"stride", 2.0}}),
                     layer("conv2d", {{"channels", 9.0}, {"kernel", 2.0}, {"padding", "valid"}}),
                     layer("average_pool", {{"size", 1.0}}), layer("flatten"),
                     layer("dense", {{"units", 12.0}}), layer("batch_norm"), layer("relu"),
                     layer("dense", {{"units", 5.0}})},
          .label_smoothing = 0.2F};
}

ModelSpec regression() {
  return {.input = {.channels = 11},
          .classes = 1,
          .loss = LossKind::kMeanSquaredError,
          .numbers = true,
          .layers = {layer("dense", {{"units", 20.0}}), layer("tanh"),
                     layer("dense", {{"units", 13.0}}), layer("batch_norm"), layer("sigmoid"),
                     layer("dense", {{"units", 1.0}})}};
}

std::vector<NamedModel> models() {
  return {{"mlp", {}, 100},
          {"lenet", without_dropout(ModelKind::kLenet), 4},
          {"cnn", without_dropout(ModelKind::kCnn), 12},
          {"softmax_cross_entropy", normalized(LossKind::kSoftmaxCrossEntropy), 30, 1},
          {"sigmoid_cross_entropy", normalized(LossKind::kSigmoidCrossEntropy), 30, 1},
          {"mean_squared_error", regression(), 17}};
}

std::ofstream opened(const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  if (!file) {
    throw std::runtime_error("cannot create " + path);
  }
  return file;
}

// NumPy's format 1.0: magic, header length, header, padded so that the numbers begin at a multiple
// of 64.
template <typename Number>
void write_array(const std::string& path, std::span<const Number> numbers) {
  constexpr std::size_t kBegin = 128;
  constexpr std::string_view kMagic("\x93NUMPY\x01\x00\x76\x00", 10);  // 118 = 128 - 10
  const std::string type = sizeof(Number) == 1 ? "|u1" : "<f4";
  std::string head = std::string(kMagic) + "{'descr': '" + type +
                     "', 'fortran_order': False, 'shape': (" + std::to_string(numbers.size()) +
                     ",), }";
  head.resize(kBegin - 1, ' ');
  head += '\n';
  std::ofstream file = opened(path);
  file << head;
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size_bytes()));
}

nlohmann::json description_of(const NamedModel& model, const ImageSet& set, float loss) {
  const ModelSpec& spec = model.spec;
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerSpec& each : layers_of(spec)) {
    nlohmann::json& fields = layers.emplace_back(nlohmann::json{{"type", each.type}});
    for (const auto& [name, value] : each.fields) {
      std::visit([&](const auto& held) { fields[name] = held; }, value);
    }
  }
  nlohmann::json variables = nlohmann::json::array();
  const ParameterLayout layout = layout_of(spec);
  for (const Variable& each : layout.variables()) {
    variables.push_back({{"name", each.name},
                         {"shape", each.shape},
                         {"offset", each.offset},
                         {"is_trained", !each.momentum.has_value()}});
  }
  return {{"input", {spec.input.height, spec.input.width, spec.input.channels}},
          {"rows", model.rows},
          {"numbers", spec.numbers},
          {"layers", layers},
          {"layout", variables},
          {"loss_type", loss_type(spec.loss).name},
          {"label_smoothing", spec.label_smoothing},
          {"target_mean", set.target_mean},
          {"target_scale", set.target_scale},
          {"loss", loss}};
}

void write_model(const NamedModel& named, const std::string& directory) {
  const ModelSpec& spec = named.spec;
  const MadeUpImages examples(named.rows, spec.input.size(), spec.classes);
  const ImageSet set = examples.set_for(spec);
  Model model(spec, named.rows, supported_isas().front());
  const AlignedVector parameters = made_up_parameters(model.layout(), named.scale);
  AlignedVector gradient(model.layout().size());
  const float loss =
      model.gradient(parameters.span(), set, row_numbers(0, named.rows), gradient.span());
  const std::string base = directory + "/" + named.name;
  opened(base + ".json") << description_of(named, set, loss).dump(1) << "\n";
  write_array<float>(base + ".parameters.npy", parameters.span());
  write_array<float>(base + ".gradient.npy", gradient.span());
  write_array(base + ".images.npy", set.images);
  write_array(base + ".numbers.npy", set.numbers);
  write_array(base + ".means.npy", set.means);
  write_array(base + ".scales.npy", set.scales);
  write_array(base + ".labels.npy", set.labels);
  write_array(base + ".targets.npy", set.targets);
}

}  // namespace
}  // namespace disttf::math

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: math_gradient_files DIRECTORY\n", stderr);
    return 2;
  }
  try {
    for (const disttf::math::NamedModel& model : disttf::math::models()) {
      disttf::math::write_model(model, argv[1]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}
