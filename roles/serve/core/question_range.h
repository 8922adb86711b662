// The range of what is asked: roles/predict/core/input_range.h, of a question. Pure.
#pragma once

#include "roles/predict/core/input_range.h"
#include "roles/serve/core/question.h"

namespace disttf::roles {

// Scales the rows where `wanted` says so, and leaves a warning in the question where they do not
// look like what the model takes. Of a model of tables nothing changes. REQUIRES: it is read.
void settle_range(InputRange wanted, const TrainedModel& model, Question& question);

// ,"warnings":["..."] where there is one, for the end of a JSON object.
void append_warnings(std::string& json, const Question& question);

}  // namespace disttf::roles
