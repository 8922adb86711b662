// The steps of a model's answer, and the graphs made of them: ONNX, SavedModel.
//
// The steps by which a trained model computes an answer, for other programs to repeat: scaling,
// layers, and the function that turns the last outputs into probabilities.
//
// Layers that act only in training are removed. Batch norm behind a layer with weights is folded
// into these weights. Converting between a row and an image is a step of its own.
//
// Values and a pure function; callable from any thread.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "math/layers/operation.h"
#include "math/shape.h"
#include "model/export/model_facts.h"
#include "model/trained_model.h"

namespace disttf::roles {

// (x - mean) * factor, for each input.
struct InputScaling {
  std::vector<float> means;    // [inputs]; none: 0
  std::vector<float> factors;  // [inputs], or one for all
};
// A row becomes an image of one position; its numbers are the channels.
struct Imaging {};
// Softmax over the outputs of an example.
struct Probabilities {};
// x / scale + mean.
struct OutputScaling {
  float mean = 0;
  float scale = 1;
};
using AnswerOperation =
    std::variant<InputScaling, Imaging, Probabilities, OutputScaling, math::DenseProduct,
                 math::ConvolutionOfImage, math::PoolingOfImage, math::ElementFunction,
                 math::ChannelNormalization, math::Flattening>;

struct AnswerStep {
  std::string name;  // of the layer, or "scaling", "answer"; unique
  AnswerOperation operation;
  math::Shape input;
  math::Shape output;
  // Whether input and output have height and width besides channels; either may be 1.
  bool takes_image = false;
  bool gives_image = false;
  std::vector<std::vector<float>> variables;  // as math/layers/operation.h has them
};

// The input of an image model is [height, width, channels] with values from 0 to 255.
struct AnswerSteps {
  math::Shape input;
  bool takes_image = false;  // else [inputs]
  std::string_view input_name;
  std::string_view output_name;
  std::size_t outputs = 0;
  std::vector<AnswerStep> steps;
};

[[nodiscard]] AnswerSteps answer_steps_of(const TrainedModel& model);

// Writes a trained model as ONNX: opset 13, IR version 7, which every runtime since 2020 accepts,
// with any batch size.
//
//   input   "images"   float [N, channels, height, width], values from 0 to 255
//           "numbers"  float [N, columns], as a table has them
//   output  "probabilities" float [N, classes], or "value" float [N, 1]
//
// Scaling is in the graph. Weights of convolutions are transposed to [units, channels, kernel,
// kernel]. The rows of a dense layer behind an image are in channel, height, width order.
//
// A pure function; callable from any thread.

// The file's bytes. `version`: of disttf.
[[nodiscard]] std::string onnx_model(const AnswerSteps& answer, const ModelFacts& facts,
                                     const std::string& version);

// Writes a trained model as a TensorFlow SavedModel: a graph whose weights are constants, with the
// signature `serving_default` and the tag `serve`.
//
//   input   "images"   float [-1, height, width, channels], values from 0 to 255
//           "numbers"  float [-1, columns], as a table has them
//   output  "probabilities" float [-1, classes], or "value" float [-1, 1]
//
// A pure function; callable from any thread.

// The bytes of saved_model.pb.
[[nodiscard]] std::string saved_model(const AnswerSteps& answer);

}  // namespace disttf::roles
