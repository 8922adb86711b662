// Computes the steps of an answer one number at a time in double, to compare with the model's own
// answer.
#pragma once

#include <vector>

#include "model/export/answer_steps.h"

namespace disttf::roles {

// `example`: in the layout that the steps expect, an image with its channels last.
[[nodiscard]] std::vector<double> answer_by(const AnswerSteps& steps, std::vector<double> example);

}  // namespace disttf::roles
