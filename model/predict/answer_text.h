// Formats a model's answer to an example as a line of text or as JSON. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "model/trained_model.h"

namespace disttf::roles {

// An example and its known facts.
struct AskedExample {
  std::string_view name;                  // of its file
  std::optional<std::size_t> row = {};    // from 1, in a file of several examples
  std::optional<std::size_t> label = {};  // its true class
  std::optional<double> target = {};      // its true number
};

// "five.png: 5 (0.9987), 3 (0.0011)": the `top` most probable classes, ties in their order;
// "table.csv row 3: 151.2". A wrong answer is followed by " instead of 3". With a non-finite
// probability the text is "five.png: not a number".
[[nodiscard]] std::string answer_text(const TrainedModel& model, const AskedExample& asked,
                                      std::span<const float> outputs, std::size_t top);

// One object: {"input":"five.png","label":"5","probability":0.9987,"top":[{"label":"5",
// "probability":0.9987},...],"probabilities":[...]}; with "row" and "expected" where they are
// known; for a number {"input":...,"row":3,"value":151.2}. A non-finite number is null.
[[nodiscard]] std::string answer_json(const TrainedModel& model, const AskedExample& asked,
                                      std::span<const float> outputs, std::size_t top);

}  // namespace disttf::roles
