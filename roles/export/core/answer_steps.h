// What a trained model does with an example from the first step to the answer, as other programs
// are to do it: scaling, layers and what makes probabilities of the last one's outputs.
//
// What acts in training alone is gone, batch norm behind a layer that multiplies by weights has
// become part of these weights, and where numbers become an image or an image numbers there is a
// step for it.
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
#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// (x - mean) * factor, each number by itself.
struct InputScaling {
  std::vector<float> means;    // [inputs]; none: 0
  std::vector<float> factors;  // [inputs], or one for all
};
// So many numbers become an image of one position, whose channels they are.
struct Imaging {};
// e^x / (sum over an example's outputs of e^x).
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
  std::string name;  // of the layer, or "scaling", "answer"; unlike all others
  AnswerOperation operation;
  math::Shape input;
  math::Shape output;
  // Whether input and output have height and width besides channels, which each may be 1.
  bool takes_image = false;
  bool gives_image = false;
  std::vector<std::vector<float>> variables;  // as math/layers/operation.h has them
};

// Of images they are [height, width, channels] and values from 0 to 255.
struct AnswerSteps {
  math::Shape input;
  bool takes_image = false;  // else [inputs]
  std::string_view input_name;
  std::string_view output_name;
  std::size_t outputs = 0;
  std::vector<AnswerStep> steps;
};

[[nodiscard]] AnswerSteps answer_steps_of(const TrainedModel& model);

}  // namespace disttf::roles
