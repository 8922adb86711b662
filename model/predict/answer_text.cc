#include "model/predict/answer_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "data/json/json_text.h"
#include "math/evaluation.h"
#include "net/wire/text.h"
#include "run/config_json.h"

namespace disttf::roles {
namespace {

using nlohmann::ordered_json;

// null for a non-finite number.
ordered_json number_json(float value) {
  return std::isfinite(value) ? ordered_json(short_number(value)) : ordered_json();
}

// Indices of the most probable classes, in descending order. Empty if an output is not a number.
std::vector<std::size_t> most_probable(std::span<const float> outputs, std::size_t top) {
  // NaN would break the ordering that the sort below needs.
  if (math::judged_class(outputs) >= outputs.size()) {
    return {};
  }
  std::vector<std::size_t> order(outputs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable: of equally probable classes, the one with the lower index comes first.
  std::ranges::stable_sort(
      order, [&outputs](std::size_t a, std::size_t b) { return outputs[a] > outputs[b]; });
  order.resize(std::min(top, order.size()));
  return order;
}

// On one line: a file name may contain line ends and control characters.
std::string place_of(const AskedExample& asked) {
  std::string text = net::one_line(asked.name);
  if (asked.row) {
    text += " row " + std::to_string(*asked.row);
  }
  return text;
}

}  // namespace

std::string answer_text(const TrainedModel& model, const AskedExample& asked,
                        std::span<const float> outputs, std::size_t top) {
  std::string text = place_of(asked) + ": ";
  if (model.tells_numbers()) {
    text += fmt::format("{:g}", outputs.front());
    return asked.target ? text + fmt::format(" instead of {:g}", *asked.target) : text;
  }
  const std::vector<std::size_t> order = most_probable(outputs, top);
  if (order.empty()) {
    return text + "not a number";
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    text += fmt::format("{}{} ({:.4f})", i == 0 ? "" : ", ",
                        net::one_line(model.class_name(order[i])), outputs[order[i]]);
  }
  if (asked.label && *asked.label != order.front()) {
    text += " instead of " + net::one_line(model.class_name(*asked.label));
  }
  return text;
}

std::string answer_json(const TrainedModel& model, const AskedExample& asked,
                        std::span<const float> outputs, std::size_t top) {
  ordered_json out = {{"input", asked.name}};
  if (asked.row) {
    out["row"] = *asked.row;
  }
  if (model.tells_numbers()) {
    out["value"] = number_json(outputs.front());
    if (asked.target) {
      // Both numbers are in the units of the training data.
      out["expected"] = *asked.target;
    }
  } else {
    const std::vector<std::size_t> order = most_probable(outputs, top);
    out["label"] = order.empty() ? ordered_json() : ordered_json(model.class_name(order.front()));
    out["probability"] = order.empty() ? ordered_json() : number_json(outputs[order.front()]);
    if (asked.label) {
      out["expected"] = model.class_name(*asked.label);
    }
    if (top > 1) {
      out["top"] = ordered_json::array();
      for (const std::size_t each : order) {
        out["top"].push_back(
            {{"label", model.class_name(each)}, {"probability", number_json(outputs[each])}});
      }
    }
    out["probabilities"] = ordered_json::array();
    for (const float each : outputs) {
      out["probabilities"].push_back(number_json(each));
    }
  }
  return data::json_text(out);
}

}  // namespace disttf::roles
