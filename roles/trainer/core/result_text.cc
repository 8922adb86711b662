#include "roles/trainer/core/result_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace disttf::roles {
namespace {

std::string name_of(std::size_t one, std::span<const std::string_view> names) {
  return one < names.size() ? std::string(names[one]) : std::to_string(one);
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

}  // namespace

std::vector<std::string> class_table(const math::Evaluation& test,
                                     std::span<const std::string_view> names) {
  std::size_t width = std::string_view("class").size();
  for (std::size_t one = 0; one < test.classes; ++one) {
    width = std::max(width, name_of(one, names).size());
  }
  std::vector<std::string> lines{
      fmt::format("{:{}}  {:>7}  {:>9}  {:>6}", "class", width, "images", "precision", "recall")};
  for (std::size_t one = 0; one < test.classes; ++one) {
    lines.push_back(fmt::format("{:{}}  {:>7}  {:>9.4f}  {:>6.4f}", name_of(one, names), width,
                                test.of_class(one), test.precision(one), test.recall(one)));
  }
  if (test.classes > kMostClassesOfATable) {
    return lines;
  }
  std::string head = fmt::format("{:{}}  judged to be", "class", width);
  lines.push_back(std::move(head));
  for (std::size_t label = 0; label < test.classes; ++label) {
    std::string line = fmt::format("{:{}} ", name_of(label, names), width);
    for (std::size_t judged = 0; judged < test.classes; ++judged) {
      line += fmt::format(" {:>5}", test.count(label, judged));
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::string metrics_line(const Metrics& metrics) {
  nlohmann::ordered_json line = {{"step", metrics.step},
                                 {"seconds", metrics.seconds},
                                 {"validation_cross_entropy", metrics.validation->cross_entropy},
                                 {"validation_accuracy", metrics.validation->accuracy()},
                                 {"test_cross_entropy", metrics.test->cross_entropy},
                                 {"test_accuracy", metrics.test->accuracy()},
                                 {"result", metrics.result_classes.has_value()}};
  if (metrics.result_classes) {
    line["classes"] = classes_of(*metrics.test, *metrics.result_classes);
    line["confusion"] = confusion_of(*metrics.test);
  }
  return line.dump() + "\n";
}

}  // namespace disttf::roles
