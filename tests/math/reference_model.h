// Models again, in double and plain loops straight from the formulas in the layers' headers,
// sharing no code with math/ but where the variables lie and what Philox draws: what Model is held
// against.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "math/model.h"

namespace disttf::math {

class ReferenceModel {
 public:
  // `place`: of the batch in its run, for layers that draw.
  explicit ReferenceModel(const ModelSpec& spec, const Model::Place& place = {});

  // The mean loss, with the spec's label smoothing, of `rows` of `set`. REQUIRES:
  // parameters.size() == layout's size.
  [[nodiscard]] double loss(std::span<const double> parameters, const ImageSet& set,
                            std::span<const std::uint32_t> rows) const;
  // The same as the model is evaluated: nothing is drawn, and what was gathered in training counts.
  [[nodiscard]] double evaluated_loss(std::span<const double> parameters, const ImageSet& set,
                                      std::span<const std::uint32_t> rows) const;
  // Its gradient by backpropagation, one layer at a time; in the place of running statistics those
  // of the batch.
  [[nodiscard]] std::vector<double> gradient(std::span<const double> parameters,
                                             const ImageSet& set,
                                             std::span<const std::uint32_t> rows) const;
  // One number of it by central differences: (loss(p + h) - loss(p - h)) / 2h.
  [[nodiscard]] double difference(std::span<const double> parameters, std::size_t parameter,
                                  const ImageSet& set, std::span<const std::uint32_t> rows) const;

 private:
  // [height, width, channels]
  struct Image {
    Shape shape;
    std::vector<double> values;
    [[nodiscard]] double& at(std::size_t y, std::size_t x, std::size_t c) {
      return values[(y * shape.width + x) * shape.channels + c];
    }
    [[nodiscard]] double at(std::size_t y, std::size_t x, std::size_t c) const {
      return values[(y * shape.width + x) * shape.channels + c];
    }
  };
  struct ReferenceLayer {
    std::string type;
    std::size_t number = 0;  // among all layers, from 1
    Shape input;
    Shape output;
    std::size_t size = 1;  // of a window or a kernel
    std::size_t stride = 1;
    std::ptrdiff_t top = 0;  // of the padding
    std::ptrdiff_t left = 0;
    double rate = 0;
    double epsilon = 0;
    std::size_t weights = 0;  // in the flat vector
    std::size_t bias = 0;
    std::size_t mean = 0;
    std::size_t variance = 0;
  };
  using Batch = std::vector<Image>;
  struct Moments {
    double mean = 0;
    double variance = 0;  // biased
    double values = 0;    // of which they are
  };

  // Calls visit(number, row, column) for each place of the window or kernel of output (y, x) that
  // is within the input: which place it is, row by row, and where in the input.
  static void for_each_place(
      const ReferenceLayer& layer, std::size_t y, std::size_t x,
      const std::function<void(std::size_t, std::size_t, std::size_t)>& visit);
  // What each layer gives for the images of the batch; these first.
  [[nodiscard]] std::vector<Batch> forward(std::span<const double> parameters, const ImageSet& set,
                                           std::span<const std::uint32_t> rows,
                                           bool trains = true) const;
  [[nodiscard]] static Moments moments_of(const Batch& batch, std::size_t channel);
  [[nodiscard]] static Batch normalized(const ReferenceLayer& layer, const Batch& input,
                                        std::span<const double> parameters, bool trains);
  [[nodiscard]] static Batch normalized_backward(const ReferenceLayer& layer, const Batch& input,
                                                 const Batch& delta,
                                                 std::span<const double> parameters,
                                                 std::span<double> gradient);
  // Of what the last layer gives.
  [[nodiscard]] double mean_loss(const Batch& outputs, const ImageSet& set,
                                 std::span<const std::uint32_t> rows, double smoothing) const;
  // Of one row, and by its outputs.
  [[nodiscard]] double row_loss(const std::vector<double>& outputs, const ImageSet& set,
                                std::uint32_t row, double smoothing) const;
  [[nodiscard]] std::vector<double> row_delta(const std::vector<double>& outputs,
                                              const ImageSet& set, std::uint32_t row) const;
  [[nodiscard]] Image output_of(const ReferenceLayer& layer, const Image& input,
                                std::span<const double> parameters, std::size_t place,
                                bool trains) const;
  // The loss by the input; that by the parameters is added to `gradient`.
  [[nodiscard]] Image backward(const ReferenceLayer& layer, const Image& input, const Image& delta,
                               std::span<const double> parameters, std::size_t place,
                               std::span<double> gradient) const;
  // What the model is to give for a row: each class's probability, or the number.
  [[nodiscard]] std::vector<double> target(const ImageSet& set, std::uint32_t row,
                                           std::size_t outputs, double smoothing) const;
  [[nodiscard]] double factor(const ReferenceLayer& layer, std::size_t place,
                              std::size_t element) const;

  ParameterLayout layout_;
  Shape input_;
  bool numbers_;  // examples are
  LossKind loss_;
  double smoothing_;  // of labels
  Model::Place place_;
  std::vector<ReferenceLayer> layers_;
};

}  // namespace disttf::math
