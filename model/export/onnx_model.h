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
#pragma once

#include <string>

#include "model/export/answer_steps.h"
#include "model/export/model_facts.h"

namespace disttf::roles {

// The file's bytes. `version`: of disttf.
[[nodiscard]] std::string onnx_model(const AnswerSteps& answer, const ModelFacts& facts,
                                     const std::string& version);

}  // namespace disttf::roles
