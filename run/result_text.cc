#include "run/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "data/json/json_text.h"
#include "net/wire/text.h"

namespace disttf::roles {
namespace {

std::string name_of(std::size_t one, std::span<const std::string_view> names) {
  return one < names.size() ? std::string(names[one]) : std::to_string(one);
}

// The same, on one line.
std::string shown_name(std::size_t one, std::span<const std::string_view> names) {
  return net::one_line(name_of(one, names));
}

nlohmann::ordered_json classes_of(const math::Evaluation& test,
                                  std::span<const std::string_view> names) {
  auto classes = nlohmann::ordered_json::array();
  for (std::size_t one = 0; one < test.classes; ++one) {
    classes.push_back({{"class", name_of(one, names)},
                       {"images", test.of_class(one)},
                       {"precision", test.precision(one)},
                       {"recall", test.recall(one)}});
  }
  return classes;
}

nlohmann::ordered_json confusion_of(const math::Evaluation& test) {
  auto rows = nlohmann::ordered_json::array();
  for (std::size_t label = 0; label < test.classes; ++label) {
    auto row = nlohmann::ordered_json::array();
    for (std::size_t judged = 0; judged < test.classes; ++judged) {
      row.push_back(test.count(label, judged));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

// Adds its keys, prefixed with "validation_" or "test_".
void add_measures(nlohmann::ordered_json& line, const std::string& part,
                  const math::Evaluation& evaluation) {
  if (evaluation.is_told) {
    line[part + "_loss"] = evaluation.loss;
    if (evaluation.told_accuracy) {
      line[part + "_accuracy"] = *evaluation.told_accuracy;
    }
    for (const auto& [name, value] : evaluation.told) {
      line[part + "_" + name] = value;
    }
    return;
  }
  if (evaluation.classes == 0) {
    line[part + "_mean_squared_error"] = evaluation.squared_error;
    line[part + "_mean_absolute_error"] = evaluation.absolute_error;
    return;
  }
  line[part + "_cross_entropy"] = evaluation.loss;
  line[part + "_accuracy"] = evaluation.accuracy();
  if (evaluation.area_under_curve) {
    line[part + "_area_under_curve"] = *evaluation.area_under_curve;
  }
}

}  // namespace

std::string told_text(const math::Evaluation& evaluation) {
  std::string text;
  const auto add = [&text](std::string_view name, double value) {
    text += fmt::format("{}{} = {:.6g}", text.empty() ? "" : ", ", name, value);
  };
  if (!std::isnan(evaluation.loss)) {
    add("loss", evaluation.loss);
  }
  if (evaluation.told_accuracy) {
    text += fmt::format("{}accuracy = {:.4f}", text.empty() ? "" : ", ", *evaluation.told_accuracy);
  }
  for (const auto& [name, value] : evaluation.told) {
    add(net::one_line(name), value);
  }
  return text;
}

std::string_view loss_word(const math::Evaluation& evaluation) noexcept {
  return evaluation.classes == 0 ? "squared error" : "cross entropy";
}

std::string validation_text(const math::Evaluation& validation) {
  return validation.classes == 0
             ? fmt::format("validation mean squared error = {:.6g}", validation.squared_error)
             : fmt::format("validation cross entropy = {:.6g}", validation.loss);
}

std::string test_text(const math::Evaluation& test) {
  return test.classes == 0 ? fmt::format("test mean absolute error = {:.6g}", test.absolute_error)
                           : fmt::format("test accuracy = {:.4f}", test.accuracy());
}

std::string result_line(std::string_view name, const math::Evaluation& test) {
  if (test.is_told && !test.told_accuracy) {
    return std::isnan(test.loss) ? fmt::format("{} is trained", name)
                                 : fmt::format("{} loss: {:.6g}", name, test.loss);
  }
  if (test.is_told) {
    return fmt::format("{} accuracy: {:.4f}", name, *test.told_accuracy);
  }
  return test.classes == 0
             ? fmt::format("{} mean absolute error: {:.6g}, mean squared error: {:.6g}", name,
                           test.absolute_error, test.squared_error)
             : fmt::format("{} accuracy: {:.4f}", name, test.accuracy());
}

std::vector<std::string> class_table(const math::Evaluation& test,
                                     std::span<const std::string_view> names) {
  std::size_t width = std::string_view("class").size();
  for (std::size_t one = 0; one < test.classes; ++one) {
    width = std::max(width, shown_name(one, names).size());
  }
  std::vector<std::string> lines{
      fmt::format("{:{}}  {:>7}  {:>9}  {:>6}", "class", width, "images", "precision", "recall")};
  for (std::size_t one = 0; one < test.classes; ++one) {
    lines.push_back(fmt::format("{:{}}  {:>7}  {:>9.4f}  {:>6.4f}", shown_name(one, names), width,
                                test.of_class(one), test.precision(one), test.recall(one)));
  }
  // The confusion matrix would have lines that no terminal shows.
  if (test.classes > kMostClassesOfATable) {
    return lines;
  }
  std::string head = fmt::format("{:{}}  judged to be", "class", width);
  lines.push_back(std::move(head));
  for (std::size_t label = 0; label < test.classes; ++label) {
    std::string line = fmt::format("{:{}} ", shown_name(label, names), width);
    for (std::size_t judged = 0; judged < test.classes; ++judged) {
      line += fmt::format(" {:>5}", test.count(label, judged));
    }
    lines.push_back(std::move(line));
  }
  if (test.area_under_curve) {
    lines.push_back(fmt::format("area under the ROC curve: {:.4f}", *test.area_under_curve));
  }
  return lines;
}

std::string metrics_line(const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", metrics.step}, {"seconds", metrics.seconds}};
  add_measures(line, "validation", *metrics.validation);
  // A program evaluates once.
  if (!metrics.test->is_told) {
    add_measures(line, "test", *metrics.test);
  }
  if (!metrics.task.empty()) {
    line["task"] = metrics.task;
  }
  // A reader finds the result without knowing how many steps the run has.
  line["result"] = metrics.result_classes.has_value();
  if (metrics.result_classes && metrics.test->classes != 0) {
    line["classes"] = classes_of(*metrics.test, *metrics.result_classes);
    line["confusion"] = confusion_of(*metrics.test);
  }
  return data::json_text(line) + "\n";
}

}  // namespace disttf::roles
