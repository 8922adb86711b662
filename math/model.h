// Models: parameters + a batch of images -> loss and gradient.
//
//   softmax: logits = x W + b
//   mlp:     h = relu(x hid_w + hid_b), ..., logits = h sm_w + sm_b
//   loss:    mean over the batch of softmax cross-entropy
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "math/kernels.h"
#include "math/parameter_layout.h"

namespace disttf::math {

enum class ModelKind : std::uint8_t { kSoftmax, kMlp };

struct ModelSpec {
  ModelKind kind = ModelKind::kMlp;
  std::size_t inputs = 784;          // pixels per image
  std::vector<std::size_t> hidden = {100};  // units per hidden layer; ignored by softmax
  std::size_t classes = 10;
};

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
  // nothing is allocated in a step.
  Model(ModelSpec spec, std::size_t max_batch, Isa isa);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const ParameterLayout& layout() const noexcept;

  // Initial values as mnist_replica.py has them: weights from a normal distribution truncated at
  // two standard deviations (stddev 1/28 for hid_w; 1/sqrt(inputs of the layer) for later ones), biases zero;
  // softmax starts at zero. A function of (seed, variable, element) only.
  // REQUIRES: parameters.size() == layout().size()
  void initialize(std::uint64_t seed, std::span<float> parameters) const;

  // Mean loss over the rows `rows` of `set`, and its gradient, written (not added) over all of
  // `gradient`, padding included (zeros there). Same inputs, same isa: same bits.
  // REQUIRES: parameters, gradient: layout().size() floats, 64-byte aligned; 0 < rows.size() <=
  // max_batch; every row < set.rows().
  float gradient(std::span<const float> parameters, const ImageSet& set,
                 std::span<const std::uint32_t> rows, std::span<float> gradient);

  // Over all rows of `set`, in chunks of max_batch.
  Evaluation evaluate(std::span<const float> parameters, const ImageSet& set);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The layout alone (a ps needs it, without a workspace).
[[nodiscard]] ParameterLayout layout_of(const ModelSpec& spec);

}  // namespace disttf::math
