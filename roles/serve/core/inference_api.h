// The Open Inference Protocol (/v2): bodies of requests -> questions, and outputs -> bodies;
// tensors as JSON, or as Triton's extension has them: little-endian bytes behind the JSON, in a
// body whose JSON has the length that the field Inference-Header-Content-Length says.
//
// The model has one input, "inputs", and one output, "probabilities" or "value". Its datatype may
// be any of numbers; BYTES are files (PNG, JPEG), in JSON as base64.
//
// Everything throws ApiError with a sentence. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roles/serve/core/question.h"

namespace disttf::roles {

// `json_bytes`: of the body, before its tensors; nullopt: all of it. REQUIRES: the question is
// cleared.
void read_infer_question(std::string_view body, std::optional<std::size_t> json_bytes,
                         const TrainedModel& model, Question& question);

// `outputs`: [count, outputs of the model].
[[nodiscard]] ApiAnswer infer_answer(const Question& question, const Addressee& asked,
                                     std::span<const float> outputs);

// What GET /v2/models/NAME says. `versions`: those that are served.
[[nodiscard]] std::string inference_metadata(const Addressee& asked,
                                             std::span<const std::uint64_t> versions);

}  // namespace disttf::roles
