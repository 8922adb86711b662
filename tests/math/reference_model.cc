#include "tests/math/reference_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "math/random.h"

namespace disttf::math {
namespace {

double number_of(const LayerSpec& spec, const char* name, double otherwise) {
  const auto found = spec.fields.find(name);
  return found == spec.fields.end() ? otherwise : std::get<double>(found->second);
}

// The padding before an axis whose length becomes length / stride.
std::ptrdiff_t padding_before(std::size_t length, std::size_t size, std::size_t stride,
                              std::size_t outputs) {
  const auto all = static_cast<std::ptrdiff_t>((outputs - 1) * stride + size) -
                   static_cast<std::ptrdiff_t>(length);
  return std::max(all, std::ptrdiff_t{0}) / 2;
}

bool acts_by_element(const std::string& type) {
  return type == "relu" || type == "tanh" || type == "sigmoid" || type == "dropout";
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

ReferenceModel::ReferenceModel(const ModelSpec& spec, const Model::Place& place)
    : layout_(layout_of(spec)),
      input_(spec.input),
      numbers_(spec.numbers),
      loss_(spec.loss),
      smoothing_(static_cast<double>(spec.label_smoothing)),
      place_(place) {
  std::size_t variable = 0;
  Shape shape = spec.input;
  for (const LayerSpec& each : layers_of(spec)) {
    ReferenceLayer layer;
    layer.type = each.type;
    layer.number = layers_.size() + 1;
    layer.input = shape;
    layer.output = shape;
    layer.rate = number_of(each, "rate", 0);
    if (each.type == "dense") {
      layer.output = {.channels = static_cast<std::size_t>(number_of(each, "units", 0))};
    } else if (each.type == "flatten") {
      layer.output = {.channels = shape.size()};
    } else if (each.type == "conv2d") {
      layer.size = static_cast<std::size_t>(number_of(each, "kernel", 0));
      layer.stride = static_cast<std::size_t>(number_of(each, "stride", 1));
      const auto padding = each.fields.find("padding");
      const bool is_valid =
          padding != each.fields.end() && std::get<std::string>(padding->second) == "valid";
      const auto outputs = [&](std::size_t length) {
        return is_valid ? (length - layer.size) / layer.stride + 1
                        : (length + layer.stride - 1) / layer.stride;
      };
      layer.output = {outputs(shape.height), outputs(shape.width),
                      static_cast<std::size_t>(number_of(each, "channels", 0))};
      if (!is_valid) {
        layer.top = padding_before(shape.height, layer.size, layer.stride, layer.output.height);
        layer.left = padding_before(shape.width, layer.size, layer.stride, layer.output.width);
      }
    } else if (each.type == "max_pool" || each.type == "average_pool") {
      layer.size = static_cast<std::size_t>(number_of(each, "size", 0));
      const auto stride = static_cast<std::size_t>(number_of(each, "stride", 0));
      layer.stride = stride == 0 ? layer.size : stride;
      layer.output = {(shape.height - layer.size) / layer.stride + 1,
                      (shape.width - layer.size) / layer.stride + 1, shape.channels};
    } else if (each.type == "batch_norm") {
      layer.epsilon = static_cast<float>(number_of(each, "epsilon", 1e-5));
    } else if (!acts_by_element(each.type)) {
      std::abort();  // a layer that this file does not support yet
    }
    if (each.type == "dense" || each.type == "conv2d" || each.type == "batch_norm") {
      layer.weights = layout_.variables()[variable++].offset;
      layer.bias = layout_.variables()[variable++].offset;
    }
    if (each.type == "batch_norm") {
      layer.mean = layout_.variables()[variable++].offset;
      layer.variance = layout_.variables()[variable++].offset;
    }
    shape = layer.output;
    layers_.push_back(layer);
  }
}

double ReferenceModel::factor(const ReferenceLayer& layer, std::size_t place,
                              std::size_t element) const {
  const std::uint64_t index = ((place_.first + place) << 28U) + (layer.number << 22U) + element / 4;
  const std::uint64_t bits =
      random_bits(place_.seed, static_cast<std::uint32_t>(Purpose::kDropout), place_.step, index);
  const double drawn = static_cast<double>((bits >> (element % 4 * 16)) % 65536);
  return drawn < std::round(layer.rate * 65536) ? 0 : 1 / (1 - layer.rate);
}

void ReferenceModel::for_each_place(
    const ReferenceLayer& layer, std::size_t y, std::size_t x,
    const std::function<void(std::size_t, std::size_t, std::size_t)>& visit) {
  for (std::size_t number = 0; number < layer.size * layer.size; ++number) {
    const auto row =
        static_cast<std::ptrdiff_t>(y * layer.stride + number / layer.size) - layer.top;
    const auto column =
        static_cast<std::ptrdiff_t>(x * layer.stride + number % layer.size) - layer.left;
    if (row >= 0 && row < static_cast<std::ptrdiff_t>(layer.input.height) && column >= 0 &&
        column < static_cast<std::ptrdiff_t>(layer.input.width)) {
      visit(number, static_cast<std::size_t>(row), static_cast<std::size_t>(column));
    }
  }
}

ReferenceModel::Image ReferenceModel::output_of(const ReferenceLayer& layer, const Image& input,
                                                std::span<const double> parameters,
                                                std::size_t place, bool trains) const {
  Image output{.shape = layer.output, .values = std::vector<double>(layer.output.size())};
  const std::size_t units = layer.output.channels;
  if (layer.type == "dense") {
    for (std::size_t u = 0; u < units; ++u) {
      output.values[u] = parameters[layer.bias + u];
      for (std::size_t i = 0; i < input.values.size(); ++i) {
        output.values[u] += input.values[i] * parameters[layer.weights + i * units + u];
      }
    }
    return output;
  }
  if (layer.type == "flatten" || acts_by_element(layer.type)) {
    for (std::size_t i = 0; i < input.values.size(); ++i) {
      const double value = input.values[i];
      output.values[i] = layer.type == "relu"                ? std::max(value, 0.0)
                         : layer.type == "tanh"              ? std::tanh(value)
                         : layer.type == "sigmoid"           ? sigmoid_of(value)
                         : layer.type == "dropout" && trains ? value * factor(layer, place, i)
                                                             : value;
    }
    return output;
  }
  for (std::size_t y = 0; y < layer.output.height; ++y) {
    for (std::size_t x = 0; x < layer.output.width; ++x) {
      for (std::size_t u = 0; u < units; ++u) {
        double sum = layer.type == "conv2d" ? parameters[layer.bias + u] : 0;
        double largest = -INFINITY;
        for_each_place(layer, y, x, [&](std::size_t number, std::size_t row, std::size_t column) {
          if (layer.type != "conv2d") {
            sum += input.at(row, column, u);
            largest = std::max(largest, input.at(row, column, u));
            return;
          }
          for (std::size_t c = 0; c < input.shape.channels; ++c) {
            const std::size_t weight = (number * input.shape.channels + c) * units + u;
            sum += input.at(row, column, c) * parameters[layer.weights + weight];
          }
        });
        const auto places = static_cast<double>(layer.size * layer.size);
        output.at(y, x, u) = layer.type == "conv2d"         ? sum
                             : layer.type == "average_pool" ? sum / places
                                                            : largest;
      }
    }
  }
  return output;
}

ReferenceModel::Image ReferenceModel::backward(const ReferenceLayer& layer, const Image& input,
                                               const Image& delta,
                                               std::span<const double> parameters,
                                               std::size_t place,
                                               std::span<double> gradient) const {
  Image below{.shape = layer.input, .values = std::vector<double>(layer.input.size())};
  const std::size_t units = layer.output.channels;
  if (layer.type == "dense") {
    for (std::size_t u = 0; u < units; ++u) {
      gradient[layer.bias + u] += delta.values[u];
      for (std::size_t i = 0; i < input.values.size(); ++i) {
        const std::size_t weight = layer.weights + i * units + u;
        gradient[weight] += input.values[i] * delta.values[u];
        below.values[i] += parameters[weight] * delta.values[u];
      }
    }
    return below;
  }
  if (layer.type == "flatten" || acts_by_element(layer.type)) {
    for (std::size_t i = 0; i < input.values.size(); ++i) {
      const double value = delta.values[i];
      const double x = input.values[i];
      below.values[i] = layer.type == "relu"      ? (x > 0 ? value : 0)
                        : layer.type == "tanh"    ? value / (std::cosh(x) * std::cosh(x))
                        : layer.type == "sigmoid" ? value * sigmoid_of(x) * sigmoid_of(-x)
                        : layer.type == "dropout" ? value * factor(layer, place, i)
                                                  : value;
    }
    return below;
  }
  for (std::size_t y = 0; y < layer.output.height; ++y) {
    for (std::size_t x = 0; x < layer.output.width; ++x) {
      for (std::size_t u = 0; u < units; ++u) {
        const double by_output = delta.at(y, x, u);
        if (layer.type == "conv2d") {
          gradient[layer.bias + u] += by_output;
        }
        double* largest = nullptr;
        double most = -INFINITY;
        for_each_place(layer, y, x, [&](std::size_t number, std::size_t row, std::size_t column) {
          if (layer.type == "average_pool") {
            below.at(row, column, u) += by_output / static_cast<double>(layer.size * layer.size);
          } else if (layer.type == "max_pool") {
            if (input.at(row, column, u) > most) {
              most = input.at(row, column, u);
              largest = &below.at(row, column, u);
            }
          } else {
            for (std::size_t c = 0; c < input.shape.channels; ++c) {
              const std::size_t weight =
                  layer.weights + (number * input.shape.channels + c) * units + u;
              gradient[weight] += input.at(row, column, c) * by_output;
              below.at(row, column, c) += parameters[weight] * by_output;
            }
          }
        });
        if (largest != nullptr) {
          *largest += by_output;
        }
      }
    }
  }
  return below;
}

std::vector<ReferenceModel::Batch> ReferenceModel::forward(std::span<const double> parameters,
                                                           const ImageSet& set,
                                                           std::span<const std::uint32_t> rows,
                                                           bool trains) const {
  Batch images;
  for (const std::uint32_t row : rows) {
    Image& image = images.emplace_back(Image{input_, std::vector<double>(input_.size())});
    for (std::size_t i = 0; i < input_.size(); ++i) {
      const std::size_t at = row * input_.size() + i;
      image.values[i] =
          numbers_ ? (static_cast<double>(set.numbers[at]) - static_cast<double>(set.means[i])) *
                         static_cast<double>(set.scales[i])
                   : set.images[at] / 255.0;
    }
  }
  std::vector<Batch> batches = {images};
  for (const ReferenceLayer& layer : layers_) {
    if (layer.type == "batch_norm") {
      batches.push_back(normalized(layer, batches.back(), parameters, trains));
      continue;
    }
    Batch outputs;
    for (std::size_t place = 0; place < rows.size(); ++place) {
      outputs.push_back(output_of(layer, batches.back()[place], parameters, place, trains));
    }
    batches.push_back(outputs);
  }
  return batches;
}

ReferenceModel::Moments ReferenceModel::moments_of(const Batch& batch, std::size_t channel) {
  std::vector<double> values;
  for (const Image& image : batch) {
    for (std::size_t i = channel; i < image.values.size(); i += image.shape.channels) {
      values.push_back(image.values[i]);
    }
  }
  Moments moments{.values = static_cast<double>(values.size())};
  for (const double value : values) {
    moments.mean += value / moments.values;
  }
  for (const double value : values) {
    moments.variance += (value - moments.mean) * (value - moments.mean) / moments.values;
  }
  return moments;
}

ReferenceModel::Batch ReferenceModel::normalized(const ReferenceLayer& layer, const Batch& input,
                                                 std::span<const double> parameters, bool trains) {
  Batch output = input;
  for (std::size_t c = 0; c < layer.input.channels; ++c) {
    const Moments of = trains ? moments_of(input, c)
                              : Moments{.mean = parameters[layer.mean + c],
                                        .variance = parameters[layer.variance + c]};
    for (Image& image : output) {
      for (std::size_t i = c; i < image.values.size(); i += layer.input.channels) {
        image.values[i] = parameters[layer.weights + c] * (image.values[i] - of.mean) /
                              std::sqrt(of.variance + layer.epsilon) +
                          parameters[layer.bias + c];
      }
    }
  }
  return output;
}

// The chain rule through mean and variance, as in the paper.
ReferenceModel::Batch ReferenceModel::normalized_backward(const ReferenceLayer& layer,
                                                          const Batch& input, const Batch& delta,
                                                          std::span<const double> parameters,
                                                          std::span<double> gradient) {
  Batch below = input;
  const std::size_t channels = layer.input.channels;
  for (std::size_t c = 0; c < channels; ++c) {
    const Moments of = moments_of(input, c);
    const double root = std::sqrt(of.variance + layer.epsilon);
    const double gamma = parameters[layer.weights + c];
    double by_mean = 0;
    double by_variance = 0;
    for (std::size_t row = 0; row < input.size(); ++row) {
      for (std::size_t i = c; i < input[row].values.size(); i += channels) {
        const double beside = input[row].values[i] - of.mean;
        const double by_output = delta[row].values[i];
        gradient[layer.bias + c] += by_output;
        gradient[layer.weights + c] += by_output * beside / root;
        by_mean -= by_output * gamma / root;
        by_variance -= by_output * gamma * beside / (2 * root * root * root);
      }
    }
    for (std::size_t row = 0; row < input.size(); ++row) {
      for (std::size_t i = c; i < input[row].values.size(); i += channels) {
        below[row].values[i] = delta[row].values[i] * gamma / root + by_mean / of.values +
                               by_variance * 2 * (input[row].values[i] - of.mean) / of.values;
      }
    }
    gradient[layer.mean + c] = of.mean;
    gradient[layer.variance + c] = of.variance * of.values / (of.values - 1);
  }
  return below;
}

std::vector<double> ReferenceModel::target(const ImageSet& set, std::uint32_t row,
                                           std::size_t outputs, double smoothing) const {
  if (loss_ == LossKind::kMeanSquaredError) {
    return {(static_cast<double>(set.targets[row]) - static_cast<double>(set.target_mean)) *
            static_cast<double>(set.target_scale)};
  }
  const bool is_softmax = loss_ == LossKind::kSoftmaxCrossEntropy;
  std::vector<double> wanted(outputs,
                             is_softmax ? smoothing / static_cast<double>(outputs) : smoothing / 2);
  wanted[set.labels[row]] += 1 - smoothing;
  return wanted;
}

double ReferenceModel::row_loss(const std::vector<double>& outputs, const ImageSet& set,
                                std::uint32_t row, double smoothing) const {
  const std::vector<double> wanted = target(set, row, outputs.size(), smoothing);
  const double largest = *std::ranges::max_element(outputs);
  double sum = 0;
  for (const double output : outputs) {
    sum += std::exp(output - largest);
  }
  double total = 0;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    switch (loss_) {
      case LossKind::kSoftmaxCrossEntropy:
        total -= wanted[j] * (outputs[j] - largest - std::log(sum));
        break;
      case LossKind::kSigmoidCrossEntropy: {
        const double p = sigmoid_of(outputs[j]);
        total -= (wanted[j] * std::log(p) + (1 - wanted[j]) * std::log(1 - p)) /
                 static_cast<double>(outputs.size());
        break;
      }
      case LossKind::kMeanSquaredError:
        total += (outputs[j] - wanted[j]) * (outputs[j] - wanted[j]);
        break;
    }
  }
  return total;
}

std::vector<double> ReferenceModel::row_delta(const std::vector<double>& outputs,
                                              const ImageSet& set, std::uint32_t row) const {
  const std::vector<double> wanted = target(set, row, outputs.size(), smoothing_);
  const double largest = *std::ranges::max_element(outputs);
  double sum = 0;
  for (const double output : outputs) {
    sum += std::exp(output - largest);
  }
  std::vector<double> delta;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    switch (loss_) {
      case LossKind::kSoftmaxCrossEntropy:
        delta.push_back(std::exp(outputs[j] - largest) / sum - wanted[j]);
        break;
      case LossKind::kSigmoidCrossEntropy:
        delta.push_back((sigmoid_of(outputs[j]) - wanted[j]) / static_cast<double>(outputs.size()));
        break;
      case LossKind::kMeanSquaredError:
        delta.push_back(2 * (outputs[j] - wanted[j]));
        break;
    }
  }
  return delta;
}

double ReferenceModel::mean_loss(const Batch& outputs, const ImageSet& set,
                                 std::span<const std::uint32_t> rows, double smoothing) const {
  double total = 0;
  for (std::size_t place = 0; place < rows.size(); ++place) {
    total += row_loss(outputs[place].values, set, rows[place], smoothing);
  }
  return total / static_cast<double>(rows.size());
}

double ReferenceModel::loss(std::span<const double> parameters, const ImageSet& set,
                            std::span<const std::uint32_t> rows) const {
  return mean_loss(forward(parameters, set, rows).back(), set, rows, smoothing_);
}

double ReferenceModel::evaluated_loss(std::span<const double> parameters, const ImageSet& set,
                                      std::span<const std::uint32_t> rows) const {
  return mean_loss(forward(parameters, set, rows, /*trains=*/false).back(), set, rows, 0);
}

std::vector<double> ReferenceModel::gradient(std::span<const double> parameters,
                                             const ImageSet& set,
                                             std::span<const std::uint32_t> rows) const {
  std::vector<double> gradient(parameters.size());
  const std::vector<Batch> batches = forward(parameters, set, rows);
  Batch deltas = batches.back();  // the loss by the layer's output
  for (std::size_t place = 0; place < rows.size(); ++place) {
    std::vector<double>& delta = deltas[place].values;
    delta = row_delta(delta, set, rows[place]);
    for (double& value : delta) {
      value /= static_cast<double>(rows.size());
    }
  }
  for (std::size_t layer = layers_.size(); layer-- > 0;) {
    if (layers_[layer].type == "batch_norm") {
      deltas = normalized_backward(layers_[layer], batches[layer], deltas, parameters, gradient);
      continue;
    }
    for (std::size_t place = 0; place < rows.size(); ++place) {
      deltas[place] = backward(layers_[layer], batches[layer][place], deltas[place], parameters,
                               place, gradient);
    }
  }
  return gradient;
}

double ReferenceModel::difference(std::span<const double> parameters, std::size_t parameter,
                                  const ImageSet& set, std::span<const std::uint32_t> rows) const {
  constexpr double kStep = 1e-5;
  std::vector<double> moved(parameters.begin(), parameters.end());
  moved[parameter] = parameters[parameter] + kStep;
  const double above = loss(moved, set, rows);
  moved[parameter] = parameters[parameter] - kStep;
  return (above - loss(moved, set, rows)) / (2 * kStep);
}

}  // namespace disttf::math
