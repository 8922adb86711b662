// The Open Inference Protocol (/v2): converts bodies of requests to questions, and outputs to
// bodies. Tensors are JSON or, as in Triton's extension, little-endian bytes after the JSON, whose
// length is in the field Inference-Header-Content-Length.
//
// The model has one input, "inputs", and one output, "probabilities" or "value". The input may have
// any numeric datatype; BYTES are files (PNG, JPEG), in JSON as base64.
//
// All functions throw ApiError with a sentence. Pure functions.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roles/serve/core/question.h"

namespace disttf::roles {

// `json_bytes`: the length of the JSON before the tensors; nullopt: the whole body. REQUIRES: the
// question is cleared.
void read_infer_question(std::string_view body, std::optional<std::size_t> json_bytes,
                         const TrainedModel& model, Question& question);

// `outputs`: [count, outputs of the model].
[[nodiscard]] ApiAnswer infer_answer(const Question& question, const Addressee& asked,
                                     std::span<const float> outputs);

// The body of GET /v2/models/NAME. `versions`: the served ones.
[[nodiscard]] std::string inference_metadata(const Addressee& asked,
                                             std::span<const std::uint64_t> versions);

}  // namespace disttf::roles
