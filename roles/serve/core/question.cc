#include "roles/serve/core/question.h"

#include <algorithm>

#include "roles/serve/core/fast_json.h"

namespace disttf::roles {

void settle_range(InputRange wanted, const TrainedModel& model, Question& question) {
  Rows& rows = question.rows;
  if (model.is_of_numbers() || rows.values() == 0) {
    return;
  }
  const FoundRange found = rows.are_bytes() ? range_of(rows.pixels()) : range_of(rows.numbers());
  // Neither range is empty here: zero rows have returned above.
  const float most = rows.are_bytes() ? static_cast<float>(std::ranges::max(rows.pixels()))
                                      : std::ranges::max(rows.numbers());
  const RangeDecision decision = decide_range(wanted, found, most, rows.has_files());
  question.warning = decision.warning;
  if (decision.is_scaled) {
    rows.scale();
  }
}

void append_warnings(std::string& json, const Question& question) {
  if (!question.warning.empty()) {
    json += R"(,"warnings":[)";
    append_string(json, question.warning);
    json += ']';
  }
}

}  // namespace disttf::roles
