// Which model: a name and its sizes, and the layers that they stand for.
//
//   softmax  dense                                                          sm
//   mlp      dense, relu for each hidden layer; dense                       hid, hid2, ...; sm
//   lenet    conv2d 32 of 5x5, relu, max_pool 2; the same with 64; flatten; conv1, conv2,
//            dense 1024, relu, dropout 1/2; dense                           fc1; sm
//   cnn      conv2d 16 of 3x3, relu, twice; max_pool 2; the same with 32;   conv1, ..., conv4;
//            flatten, dropout 2/5; dense                                    sm
//
// On the right are the names of their variables: hid_w, hid_b, ... in the flat vector in this
// order. softmax and mlp are mnist_replica.py's, lenet is the network of TensorFlow's "Deep MNIST
// for experts". Alternatively a model is any list of layers whose last one gives a number for each
// class, or the variables of a user's program (math/program_layout.h), which has no layers.
//
// Separate from model.h because a parameter server needs only this. Pure functions; callable from
// any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "math/layers/layer.h"
#include "math/layers/layer_spec.h"
#include "math/losses/registry.h"
#include "math/parameter_layout.h"
#include "math/shape.h"

namespace disttf::math {

enum class ModelKind : std::uint8_t { kSoftmax, kMlp, kLenet, kCnn };
inline constexpr std::array<std::string_view, 4> kModelNames = {"softmax", "mlp", "lenet", "cnn"};

[[nodiscard]] std::string_view model_name(ModelKind kind) noexcept;  // "softmax", ...
[[nodiscard]] std::optional<ModelKind> model_from_name(std::string_view name) noexcept;

// Limits for validate(): enough for any network on 28x28 images, and small enough that no product
// of sizes overflows and a mistyped number does not allocate all memory.
inline constexpr std::size_t kMaxInputs = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxHiddenLayers = 16;
// A layer's position takes six bits of dropout's draws (math/layers/dropout.cc).
inline constexpr std::size_t kMaxLayers = 63;
inline constexpr std::size_t kMaxUnits = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxClasses = 256;  // a label is one byte

struct ModelSpec {
  ModelKind kind = ModelKind::kMlp;
  Shape input{.height = 28, .width = 28};   // of an example
  std::vector<std::size_t> hidden = {100};  // mlp: units per hidden layer
  std::size_t classes = 10;                 // outputs of the last layer; 1 where labels are numbers
  LossKind loss = LossKind::kSoftmaxCrossEntropy;
  bool numbers = false;             // an example consists of numbers, not of an image's bytes
  std::vector<LayerSpec> layers{};  // for a model that is none of the above
  // The share of the target that is spread evenly over all classes in training: the target is (1 -
  // s) onehot(label) + s / classes. 0 <= s < 1.
  float label_smoothing = 0;
  // The variables of a user's program, which computes losses and gradients itself. If there are
  // any, all other members are unused. Offsets and sizes are not looked at: layout_of() computes
  // them.
  std::vector<Variable> variables{};
  // Of such a program in an elastic run: what the bits of its gradients depend on, as that of the
  // chief tells: {"torch", "2.9"}, ... Empty: not published.
  std::map<std::string, std::string> fingerprint{};

  [[nodiscard]] bool is_program() const noexcept { return !variables.empty(); }
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// Throws std::invalid_argument with one sentence: the field, its value, what is allowed.
void validate(const ModelSpec& spec);

// The model's name; "model of 11 layers" if it has none; "program of 12 variables".
[[nodiscard]] std::string describe(const ModelSpec& spec);

// The layers of a model, as in a model file. Throws std::invalid_argument for a program, which has
// none.
[[nodiscard]] std::vector<LayerSpec> layers_of(const ModelSpec& spec);

// Whether one of them is a convolution; false for a program.
[[nodiscard]] bool is_convolutional(const ModelSpec& spec);

// A layer at its position in a model.
struct PlacedLayer {
  std::string name;  // "hid", or the type and its number among the layers of that type
  std::unique_ptr<const Layer> layer;
};
// All layers, each matching the one before. Throws as validate(spec) does.
[[nodiscard]] std::vector<PlacedLayer> make_layers(const ModelSpec& spec);

// The layout of a model's variables. Throws as validate(spec) does.
[[nodiscard]] ParameterLayout layout_of(const ModelSpec& spec);

// The smallest batch for training; 1 for a program. Throws as validate(spec) does.
[[nodiscard]] std::size_t least_rows(const ModelSpec& spec);

// Floats that a trainer keeps for each row of a batch: the example, each layer's output and kept
// values, and the gradients by them. An upper bound: some are smaller on some processors. 0 for a
// program. Throws as validate(spec) does.
[[nodiscard]] std::size_t activation_floats(const ModelSpec& spec);

}  // namespace disttf::math
