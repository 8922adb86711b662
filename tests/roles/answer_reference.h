// What the steps of an answer come to, computed one number at a time in double: held against what
// the model itself says.
#pragma once

#include <vector>

#include "roles/export/core/answer_steps.h"

namespace disttf::roles {

// `example`: as the steps take it, an image with its channels last.
[[nodiscard]] std::vector<double> answer_by(const AnswerSteps& steps, std::vector<double> example);

}  // namespace disttf::roles
