// Models: parameters + a batch of images -> loss and gradient.
//
//   softmax: logits = x W + b
//   mlp:     h = relu(x hid_w + hid_b), ..., logits = h sm_w + sm_b
//   loss:    mean over the batch of softmax cross-entropy
//
// x [batch, inputs] is the batch's pixels times 1/255, W [inputs, classes], b [classes], and so on:
// all row-major float32. Variables in the flat vector, in this order: softmax sm_w, sm_b; mlp
// hid_w, hid_b, then hid2_w, hid2_b, ... for further hidden layers, then sm_w, sm_b.
//
// Errors: a ModelSpec is the user's, so validate() throws; everything else is our own bug.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "math/kernels.h"
#include "math/parameter_layout.h"

namespace disttf::math {

enum class ModelKind : std::uint8_t { kSoftmax, kMlp };
inline constexpr std::array<std::string_view, 2> kModelNames = {"softmax", "mlp"};

[[nodiscard]] std::string_view model_name(ModelKind kind) noexcept;  // "softmax", "mlp"
[[nodiscard]] std::optional<ModelKind> model_from_name(std::string_view name) noexcept;

// What validate() allows: enough for any network on 28x28 images, and small enough that no
// product of sizes overflows and a mistyped number does not ask for all memory.
inline constexpr std::size_t kMaxInputs = std::size_t{1} << 20U;
inline constexpr std::size_t kMaxHiddenLayers = 16;
inline constexpr std::size_t kMaxUnits = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxClasses = 256;  // a label is one byte

struct ModelSpec {
  ModelKind kind = ModelKind::kMlp;
  std::size_t inputs = 784;                 // pixels per image
  std::vector<std::size_t> hidden = {100};  // units per hidden layer; ignored by softmax
  std::size_t classes = 10;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// Throws std::invalid_argument with one sentence: the field, its value, what is allowed.
void validate(const ModelSpec& spec);

// Images and their labels as they lie in memory: bytes, one image after the other.
struct ImageSet {
  std::span<const std::uint8_t> images;  // [rows, inputs], 0..255; becomes x/255 in the batch
  std::span<const std::uint8_t> labels;  // [rows], each < classes
  [[nodiscard]] std::size_t rows() const noexcept { return labels.size(); }
};

struct Evaluation {
  double cross_entropy = 0;  // mean per image, natural logarithm
  std::size_t correct = 0;   // images whose largest logit is their label
  std::size_t rows = 0;
  [[nodiscard]] double accuracy() const noexcept {
    return rows == 0 ? 0 : static_cast<double>(correct) / static_cast<double>(rows);
  }
};

// One model with its workspace. Not thread-safe: one object per computing thread.
class Model {
 public:
  // `max_batch`: the largest number of rows gradient() will be given; all memory is taken here,
  // nothing is allocated in a step. Throws as validate() does.
  // `dtype`: what the operands of products are rounded to. With bfloat16 the bits are the same on
  // all sets that have it, on threads that have called flush_denormals(). `threads`: how many
  // compute, the caller among them. Each computes rows of what a batch leads to, then rows of the
  // gradient, so the bits do not depend on them.
  // REQUIRES: max_batch > 0; isa is in supported_isas(); can_multiply(isa, dtype); threads > 0.
  Model(ModelSpec spec, std::size_t max_batch, Isa isa, ComputeDtype dtype = ComputeDtype::kF32,
        std::size_t threads = 1);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ParameterLayout& layout() const noexcept;

  // Initial values as mnist_replica.py has them: weights from a normal distribution truncated at
  // two standard deviations (stddev 1/sqrt(inputs of the layer): 1/28 for hid_w), biases zero;
  // softmax starts at zero. A function of (seed, variable, element) only, the same bits on every
  // machine and instruction set. Padding becomes zero.
  // REQUIRES: parameters.size() == layout().size()
  void initialize(std::uint64_t seed, std::span<float> parameters) const;

  // Mean loss over the rows `rows` of `set`, and its gradient, written (not added) over all of
  // `gradient`, padding included (zeros there). Same inputs, same isa: same bits, on any machine
  // and whatever max_batch is. Finite logits, however large, give a finite gradient.
  // REQUIRES: parameters, gradient: layout().size() floats, 64-byte aligned; 0 < rows.size() <=
  // max_batch; every row < set.rows(); every label < classes.
  float gradient(std::span<const float> parameters, const ImageSet& set,
                 std::span<const std::uint32_t> rows, std::span<float> gradient);

  // The same in two parts: the rows become the batch, which needs no parameters and so can be done
  // while those are on their way; then the batch's gradient. evaluate() makes other batches.
  void load(const ImageSet& set, std::span<const std::uint32_t> rows);
  // `on_ready`, if there is one, is called now and then with the loss, when so many floats of the
  // gradient, from its beginning, are final; not for the last ones.
  using OnReady = std::function<void(float loss, std::size_t ready)>;
  float gradient_of_batch(std::span<const float> parameters, std::span<float> gradient,
                          const OnReady& on_ready = {});

  // Over all rows of `set`, in chunks of max_batch. An image counts as correct when its label is
  // the first of the largest logits; a logit that is not a number is never correct.
  // REQUIRES: parameters as above; every label < classes.
  Evaluation evaluate(std::span<const float> parameters, const ImageSet& set);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The layout alone (a ps needs it, without a workspace). Throws as validate() does.
[[nodiscard]] ParameterLayout layout_of(const ModelSpec& spec);

}  // namespace disttf::math
