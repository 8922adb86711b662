// What a model says of an example, as a line for people or for programs. Pure functions.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "roles/model/core/trained_model.h"

namespace disttf::roles {

// An example that was asked about.
struct AskedExample {
  std::string_view name;                  // of its file
  std::optional<std::size_t> row = {};    // where the file has several: counted from 1
  std::optional<std::size_t> label = {};  // the class that it is known to be of
  std::optional<double> target = {};      // the number that its label is known to be
};

// "five.png: 5 (0.9987), 3 (0.0011)": the `top` most probable classes, equal ones in their order;
// "table.csv row 3: 151.2". Where its label is known and another, " instead of 3" behind it. A
// class whose probability is no number is not told: "five.png: not a number".
[[nodiscard]] std::string answer_text(const TrainedModel& model, const AskedExample& asked,
                                      std::span<const float> outputs, std::size_t top);

// One object: {"input":"five.png","label":"5","probability":0.9987,"top":[{"label":"5",
// "probability":0.9987},...],"probabilities":[...]}; with "row" and "expected" where they are
// known; of numbers {"input":...,"row":3,"value":151.2}. What is no number is null.
[[nodiscard]] std::string answer_json(const TrainedModel& model, const AskedExample& asked,
                                      std::span<const float> outputs, std::size_t top);

}  // namespace disttf::roles
