// TensorFlow Serving's REST API: converts bodies of requests to questions, and outputs to bodies.
//
//   :predict    {"instances": [ROW, ...]}, answered with {"predictions": [...]}, or {"inputs":
//   ROWS}
//               with {"outputs": [...]}
//   :classify   {"examples": [EXAMPLE, ...]}, answered with {"results": [[["label", 0.9], ...]]}
//   :regress    the same, answered with {"results": [1.5, ...]}
//
// A ROW is an array of the model's numbers, flat or nested as an image, or an EXAMPLE: an object
// with the row as "inputs", with a file in base64 as "b64" or in "inputs", or with a number for
// each named column of a table.
//
// All functions throw ApiError with a sentence. Pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "roles/serve/core/question.h"

namespace disttf::roles {

// REQUIRES: the question is cleared, for one of the three calls.
void read_rest_question(std::string_view body, const TrainedModel& model, Question& question);

// `outputs`: [count, outputs of the model].
[[nodiscard]] std::string rest_answer(const Question& question, const TrainedModel& model,
                                      std::span<const float> outputs);

struct VersionStatus {
  std::uint64_t version = 0;
  bool is_available = true;
  std::string sentence = {};  // why it is not served
};
// The body of GET /v1/models/NAME.
[[nodiscard]] std::string rest_status(std::span<const VersionStatus> versions);
// The body of GET ../metadata.
[[nodiscard]] std::string rest_metadata(const Addressee& model);

}  // namespace disttf::roles
