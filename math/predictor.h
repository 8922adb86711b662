// A trained model for inference: only the forward pass.
//
// The bits of an example's outputs depend on the example, the parameters, the instruction set and
// the type of products, but not on the other examples, their number or the threads. So requests of
// several clients can share a batch.
//
// Not thread-safe: one object per thread. The parameters may be shared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "math/aligned.h"
#include "math/kernels.h"
#include "math/model.h"
#include "math/model_spec.h"

namespace disttf::math {

// How a table's numbers are scaled for a model, and its answers scaled back: as in ImageSet.
struct NumberScaling {
  std::span<const float> means{};   // [inputs]; empty: the numbers are used unchanged
  std::span<const float> scales{};  // [inputs]
  float target_mean = 0;            // of labels that are numbers
  float target_scale = 1;
};

class Predictor {
 public:
  // `parameters`: layout_of(spec).size() floats, 64-byte aligned. They and the scaling's spans must
  // outlive the object. `max_rows`: for one pass through the layers; predict() accepts any number.
  // Throws as validate(spec) does. REQUIRES: as Model's constructor.
  Predictor(const ModelSpec& spec, std::span<const float> parameters, const NumberScaling& scaling,
            std::size_t max_rows, Isa isa, ComputeDtype dtype = ComputeDtype::kF32,
            std::size_t threads = 1);

  [[nodiscard]] std::size_t inputs() const noexcept { return spec_.input.size(); }
  // For an example: as many probabilities as there are classes, by softmax or by sigmoid for each
  // class, depending on the loss; or one number, in the label's own unit.
  [[nodiscard]] std::size_t outputs() const noexcept { return spec_.classes; }

  // Images, [rows, inputs()] bytes from 0 to 255 -> [rows, outputs()].
  // REQUIRES: the model takes images (not ModelSpec::numbers); the sizes fit.
  void predict(std::span<const std::uint8_t> pixels, std::span<float> outputs);

  // Numbers, [rows, inputs()] -> [rows, outputs()]. For a model of images they are pixel values
  // from 0 to 255 that may be fractional; an image of whole values gives a result that is
  // bit-identical to that of the image in bytes. REQUIRES: the sizes fit.
  void predict_numbers(std::span<const float> numbers, std::span<float> outputs);

 private:
  void infer_numbers(std::span<const float> numbers, std::span<float> outputs);
  [[nodiscard]] Model& model_of_floats();
  // Converts the last layer's outputs to answers.
  void answer(std::span<float> outputs) const noexcept;

  ModelSpec spec_;
  std::span<const float> parameters_;
  NumberScaling scaling_;
  std::size_t max_rows_;
  Isa isa_;
  ComputeDtype dtype_;
  std::size_t threads_;
  Model model_;
  // For images that are not bytes: the same layers over numbers, made on first use.
  std::unique_ptr<Model> of_floats_;
  std::vector<float> zeros_;            // [inputs]: the means of such images
  std::vector<float> ones_;             // [inputs]: their factors
  std::vector<std::uint8_t> as_bytes_;  // [inputs] of one image
};

}  // namespace disttf::math
