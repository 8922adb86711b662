// Writes a trained model as a TensorFlow SavedModel: a graph whose weights are constants, with the
// signature `serving_default` and the tag `serve`.
//
//   input   "images"   float [-1, height, width, channels], values from 0 to 255
//           "numbers"  float [-1, columns], as a table has them
//   output  "probabilities" float [-1, classes], or "value" float [-1, 1]
//
// A pure function; callable from any thread.
#pragma once

#include <string>

#include "model/export/answer_steps.h"

namespace disttf::roles {

// The bytes of saved_model.pb.
[[nodiscard]] std::string saved_model(const AnswerSteps& answer);

}  // namespace disttf::roles
