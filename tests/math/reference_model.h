// A second implementation of the models, in double and with plain loops that follow the formulas in
// the layers' headers. It is the reference for Model, and shares only the variables' positions and
// Philox's numbers with math/.
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
  // `place`: the position of the batch in its run, for layers that draw random numbers.
  explicit ReferenceModel(const ModelSpec& spec, const Model::Place& place = {});

  // Returns the mean loss of `rows` of `set`, with the spec's label smoothing. REQUIRES:
  // parameters.size() == layout's size.
  [[nodiscard]] double loss(std::span<const double> parameters, const ImageSet& set,
                            std::span<const std::uint32_t> rows) const;
  // The same in evaluation mode: no random numbers, and running statistics instead of the batch's.
  [[nodiscard]] double evaluated_loss(std::span<const double> parameters, const ImageSet& set,
                                      std::span<const std::uint32_t> rows) const;
  // Returns the gradient by backpropagation, one layer at a time; running statistics have the
  // batch's statistics instead of a gradient.
  [[nodiscard]] std::vector<double> gradient(std::span<const double> parameters,
                                             const ImageSet& set,
                                             std::span<const std::uint32_t> rows) const;
  // Returns one element of the gradient by central differences: (loss(p + h) - loss(p - h)) / 2h.
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
    std::ptrdiff_t top = 0;  // padding
    std::ptrdiff_t left = 0;
    double rate = 0;
    double epsilon = 0;
    std::size_t weights = 0;  // position in the flat vector
    std::size_t bias = 0;
    std::size_t mean = 0;
    std::size_t variance = 0;
  };
  using Batch = std::vector<Image>;
  struct Moments {
    double mean = 0;
    double variance = 0;  // biased
    double values = 0;    // number of values
  };

  // Calls visit(number, row, column) for each position of the window or kernel of output (y, x)
  // that is inside the input: its number, row by row, and its location in the input.
  static void for_each_place(
      const ReferenceLayer& layer, std::size_t y, std::size_t x,
      const std::function<void(std::size_t, std::size_t, std::size_t)>& visit);
  // Returns the outputs of every layer for the images of the batch, preceded by the images
  // themselves.
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
  // Returns the mean loss of the last layer's outputs.
  [[nodiscard]] double mean_loss(const Batch& outputs, const ImageSet& set,
                                 std::span<const std::uint32_t> rows, double smoothing) const;
  // Returns the loss of one row from its outputs.
  [[nodiscard]] double row_loss(const std::vector<double>& outputs, const ImageSet& set,
                                std::uint32_t row, double smoothing) const;
  [[nodiscard]] std::vector<double> row_delta(const std::vector<double>& outputs,
                                              const ImageSet& set, std::uint32_t row) const;
  [[nodiscard]] Image output_of(const ReferenceLayer& layer, const Image& input,
                                std::span<const double> parameters, std::size_t place,
                                bool trains) const;
  // Returns the loss by the input; adds the loss by the parameters to `gradient`.
  [[nodiscard]] Image backward(const ReferenceLayer& layer, const Image& input, const Image& delta,
                               std::span<const double> parameters, std::size_t place,
                               std::span<double> gradient) const;
  // Returns the expected output for a row: each class's probability, or the number.
  [[nodiscard]] std::vector<double> target(const ImageSet& set, std::uint32_t row,
                                           std::size_t outputs, double smoothing) const;
  [[nodiscard]] double factor(const ReferenceLayer& layer, std::size_t place,
                              std::size_t element) const;

  ParameterLayout layout_;
  Shape input_;
  bool numbers_;  // examples are numbers
  LossKind loss_;
  double smoothing_;  // of labels
  Model::Place place_;
  std::vector<ReferenceLayer> layers_;
};

}  // namespace disttf::math
