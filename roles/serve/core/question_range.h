// The range of a question's values (model/predict/input_range.h). Pure.
#pragma once

#include "model/predict/input_range.h"
#include "roles/serve/core/question.h"

namespace disttf::roles {

// Scales the rows if `wanted` says so, and sets the question's warning if they do not look like the
// model's inputs. Does nothing for models of tables. REQUIRES: the question has been read.
void settle_range(InputRange wanted, const TrainedModel& model, Question& question);

// Appends ,"warnings":["..."] to the end of a JSON object, if there is a warning.
void append_warnings(std::string& json, const Question& question);

}  // namespace disttf::roles
