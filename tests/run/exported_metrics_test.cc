// What is written about metrics by hand is held to the table that the program exports them by: the
// document, the dashboard and the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "run/monitor/core/metric_table.h"

namespace disttf::roles {
namespace {

using nlohmann::json;

const std::string kRoot = DISTTF_SOURCE_DIR;

std::string text_of(const std::string& name) {
  std::ifstream file(kRoot + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string type_of(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kInfo:
      return "info";
    case MetricType::kGauge:
      break;
  }
  return "gauge";
}

// As a query names it.
std::set<std::string> names_of(const MetricRow& row) {
  const std::string name(row.name);
  switch (row.type) {
    case MetricType::kCounter:
      return {name + "_total"};
    case MetricType::kInfo:
      return {name + "_info"};
    case MetricType::kHistogram:
      return {name + "_bucket", name + "_sum", name + "_count"};
    case MetricType::kGauge:
      break;
  }
  return {name};
}

std::set<std::string> exported_names() {
  std::set<std::string> names;
  for (const MetricRow& row : metric_rows()) {
    names.merge(names_of(row));
  }
  return names;
}

std::set<std::string> names_in(const std::string& text) {
  static const std::regex kName("\\b(disttf|process)_[a-z_]+\\b");
  std::set<std::string> names;
  for (std::sregex_iterator each(text.begin(), text.end(), kName), end; each != end; ++each) {
    names.insert(each->str());
  }
  return names;
}

// --- the document

constexpr std::string_view kBegin = "<!-- metrics -->\n";
constexpr std::string_view kEnd = "<!-- end of metrics -->\n";

std::string table() {
  std::string text =
      "\n| metric | type | unit | labels | of | meaning |\n|---|---|---|---|---|---|\n";
  for (const MetricRow& row : metric_rows()) {
    const std::string name =
        row.type == MetricType::kHistogram ? std::string(row.name) : *names_of(row).begin();
    std::string labels(row.labels.empty() ? "" : "`" + std::string(row.labels) + "`");
    for (std::size_t at = 0; (at = labels.find(", ", at)) != std::string::npos; at += 4) {
      labels.replace(at, 2, "`, `");
    }
    std::string help(row.help);
    help.erase(help.find_last_not_of('.') + 1);
    text += "| `" + name + "` | " + type_of(row.type) + " | " + std::string(row.unit) + " | " +
            labels + " | " + std::string(row.tasks) + " | " + help + " |\n";
  }
  return text + "\n";
}

TEST(MetricsDocument, HasTheTable) {
  const std::string path = kRoot + "/docs/metrics.md";
  std::string document = text_of("docs/metrics.md");
  const std::size_t begin = document.find(kBegin) + kBegin.size();
  ASSERT_NE(document.find(kEnd), std::string::npos);
  const char* const rewrite = std::getenv("DISTTF_REWRITE");
  if (rewrite != nullptr && std::string(rewrite) == "1") {
    document.replace(begin, document.find(kEnd) - begin, table());
    std::ofstream(path, std::ios::binary) << document;
  }
  EXPECT_EQ(document.substr(begin, document.find(kEnd) - begin), table())
      << "DISTTF_REWRITE=1 with this test writes it anew";
}

TEST(MetricsDocument, NamesNoMetricThatThereIsNot) {
  std::set<std::string> known = exported_names();
  for (const MetricRow& row : metric_rows()) {
    known.insert(std::string(row.name));
  }
  for (const std::string& name : names_in(text_of("docs/metrics.md"))) {
    EXPECT_TRUE(known.contains(name)) << name;
  }
}

TEST(MetricsDocument, SaysWhatToDoAboutEachAlert) {
  const std::string rules = text_of("deploy/prometheus/disttf.rules.yml");
  const std::string document = text_of("docs/metrics.md");
  static const std::regex kAlert("- alert: ([A-Za-z]+)");
  std::size_t alerts = 0;
  for (std::sregex_iterator each(rules.begin(), rules.end(), kAlert), end; each != end; ++each) {
    ++alerts;
    EXPECT_THAT(document, testing::HasSubstr("| `" + (*each)[1].str() + "` |"));
  }
  EXPECT_GE(alerts, 5U);
}

// --- the rules

TEST(PrometheusRules, NameOnlyMetricsThatAreExported) {
  const std::set<std::string> exported = exported_names();
  for (const char* const file : {"disttf.rules.yml", "disttf.rules_test.yml"}) {
    const std::set<std::string> named = names_in(text_of(std::string("deploy/prometheus/") + file));
    EXPECT_GE(named.size(), 5U);
    for (const std::string& name : named) {
      EXPECT_TRUE(exported.contains(name)) << file << ": " << name;
    }
  }
}

// --- the dashboard

class Dashboard : public testing::Test {
 protected:
  const json dashboard_ = json::parse(text_of("deploy/grafana/disttf.json"));
};

TEST_F(Dashboard, QueriesOnlyMetricsThatAreExported) {
  const std::set<std::string> exported = exported_names();
  std::size_t queries = 0;
  for (const json& panel : dashboard_.at("panels")) {
    for (const json& target : panel.value("targets", json::array())) {
      ++queries;
      const std::set<std::string> named = names_in(target.at("expr"));
      EXPECT_FALSE(named.empty()) << target;
      for (const std::string& name : named) {
        EXPECT_TRUE(exported.contains(name)) << panel.at("title") << ": " << name;
      }
    }
  }
  EXPECT_GE(queries, 30U);
}

TEST_F(Dashboard, ShowsEveryMetricOfDisttfButThoseOfSingleNumbers) {
  const std::set<std::string> shown = names_in(dashboard_.dump());
  // Shown by others: as a part of a sum, or as the run's own.
  const std::set<std::string> not_shown = {
      "disttf_step",         "disttf_generation",      "disttf_ps_finished",
      "disttf_ps_view",      "disttf_ps_primary",      "disttf_ps_missing_gradients",
      "disttf_run_step",     "disttf_run_train_steps", "disttf_run_loss",
      "disttf_run_examples", "disttf_child_running",   "disttf_run_examples_per_second"};
  for (const MetricRow& row : metric_rows()) {
    if (row.name.starts_with("disttf_") && !not_shown.contains(std::string(row.name))) {
      const std::set<std::string> names = names_of(row);
      EXPECT_TRUE(std::ranges::any_of(names, [&shown](const std::string& name) {
        return shown.contains(name);
      })) << row.name;
    }
  }
}

TEST_F(Dashboard, HasPanelsThatDoNotOverlap) {
  std::set<int> ids;
  std::set<std::pair<int, int>> taken;
  for (const json& panel : dashboard_.at("panels")) {
    EXPECT_TRUE(ids.insert(panel.at("id").get<int>()).second);
    const json& place = panel.at("gridPos");
    const int left = place.at("x");
    const int top = place.at("y");
    const int right = left + place.at("w").get<int>();
    const int bottom = top + place.at("h").get<int>();
    EXPECT_LE(right, 24) << panel.at("title");
    for (int x = left; x < right; ++x) {
      for (int y = top; y < bottom; ++y) {
        EXPECT_TRUE(taken.emplace(x, y).second) << panel.at("title") << " at " << x << ", " << y;
      }
    }
  }
}

TEST_F(Dashboard, AsksForTheDataSourceThatItsReaderChooses) {
  for (const json& panel : dashboard_.at("panels")) {
    if (panel.at("type") != "row") {
      EXPECT_EQ(panel.at("datasource").at("uid"), "${datasource}") << panel.at("title");
    }
  }
  EXPECT_EQ(dashboard_.at("templating").at("list").at(0).at("name"), "datasource");
}

}  // namespace
}  // namespace disttf::roles
