// A trained model that answers: the way forward alone.
//
// The bits of an example's outputs depend on the example, the parameters, the instruction set and
// the type that products are computed in: not on the examples beside it, nor on how many there are,
// nor on threads. So whoever asks may be answered together with whoever else asks.
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

// How the numbers of a table are given to a model, and what its answers mean: as ImageSet has it.
struct NumberScaling {
  std::span<const float> means{};   // [inputs]; none: the numbers are taken as they are
  std::span<const float> scales{};  // [inputs]
  float target_mean = 0;            // of labels that are numbers
  float target_scale = 1;
};

class Predictor {
 public:
  // `parameters`: layout_of(spec).size() floats, 64-byte aligned; they and the scaling's spans must
  // outlive the object. `max_rows`: of one pass through the layers; predict() takes any number.
  // Throws as validate(spec) does. REQUIRES: as Model's constructor.
  Predictor(const ModelSpec& spec, std::span<const float> parameters, const NumberScaling& scaling,
            std::size_t max_rows, Isa isa, ComputeDtype dtype = ComputeDtype::kF32,
            std::size_t threads = 1);

  [[nodiscard]] std::size_t inputs() const noexcept { return spec_.input.size(); }
  // Of an example: as many probabilities as there are classes, by softmax, or each by itself by
  // sigmoid, as the loss says; or one number, in the label's own unit.
  [[nodiscard]] std::size_t outputs() const noexcept { return spec_.classes; }

  // Images, [rows, inputs()] bytes from 0 to 255 -> [rows, outputs()].
  // REQUIRES: the model takes images (not ModelSpec::numbers); the sizes fit.
  void predict(std::span<const std::uint8_t> pixels, std::span<float> outputs);

  // Numbers, [rows, inputs()] -> [rows, outputs()]. To a model of images they are values of pixels
  // from 0 to 255 that need not be whole; an image all of whose values are whole ones has the bits
  // of the same image in bytes. REQUIRES: the sizes fit.
  void predict_numbers(std::span<const float> numbers, std::span<float> outputs);

 private:
  void infer_numbers(std::span<const float> numbers, std::span<float> outputs);
  [[nodiscard]] Model& model_of_floats();
  // What the last layer gives -> what an answer says.
  void answer(std::span<float> outputs) const noexcept;

  ModelSpec spec_;
  std::span<const float> parameters_;
  NumberScaling scaling_;
  std::size_t max_rows_;
  Isa isa_;
  ComputeDtype dtype_;
  std::size_t threads_;
  Model model_;
  // Of images that are not bytes: the same layers over numbers, made when the first one comes.
  std::unique_ptr<Model> of_floats_;
  std::vector<float> zeros_;            // [inputs]: the means of such images
  std::vector<float> ones_;             // [inputs]: what they are multiplied by
  std::vector<std::uint8_t> as_bytes_;  // [inputs] of one image
};

}  // namespace disttf::math
