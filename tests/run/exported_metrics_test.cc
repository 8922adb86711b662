// What is written about metrics by hand is held to the table that the program exports them by: the
// document, the dashboard and the rules.
#include <gmock/gmock.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>

#include "run/monitor/core/metric_table.h"
#include "run/monitor/shell/metrics_address.h"
#include "run/outcome.h"
#include "tests/data/scratch.h"
#include "tests/support/http_get.h"
#include "tests/support/thrown.h"

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

// The address on real sockets, and the file.

using test_support::http_ask;
using test_support::http_body;
using test_support::http_get;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::uint16_t port_of(const MetricsAddress& address) {
  const std::string& target = address.target();
  std::uint16_t port = 0;
  std::from_chars(target.data() + target.rfind(':') + 1, target.data() + target.size(), port);
  return port;
}

class MetricsAddressTest : public testing::Test {
 protected:
  Meters meters_{"worker:1", "0.1.0", "avx2"};
};

TEST_F(MetricsAddressTest, AnswersAScrape) {
  const MetricsAddress address({.port = 0}, meters_);
  meters_.trainer().step.set(7);
  const std::string reply = http_get(port_of(address), "/metrics");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; "
                                "charset=utf-8\r\n"));
  EXPECT_THAT(reply, HasSubstr("\ndisttf_step{task=\"worker:1\"} 7\n"));
  EXPECT_THAT(reply, HasSubstr("\nprocess_resident_memory_bytes{task=\"worker:1\"} "));
}

TEST_F(MetricsAddressTest, AnswersOneOfOpenMetrics) {
  const MetricsAddress address({.port = 0}, meters_);
  const std::string reply =
      http_get(port_of(address), "/metrics", "Accept: application/openmetrics-text\r\n");
  EXPECT_THAT(reply, HasSubstr("\r\nContent-Type: application/openmetrics-text; version=1.0.0; "
                               "charset=utf-8\r\n"));
  EXPECT_THAT(reply, EndsWith("\n# EOF\n"));
}

TEST_F(MetricsAddressTest, AnswersHeadWithoutABody) {
  const MetricsAddress address({.port = 0}, meters_);
  const std::string reply =
      http_ask(port_of(address), "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(reply, Not(HasSubstr("Content-Length: 0\r\n")));
  EXPECT_THAT(reply, EndsWith("\r\n\r\n"));
}

TEST_F(MetricsAddressTest, HasNothingElse) {
  const MetricsAddress address({.port = 0}, meters_);
  for (const char* const path : {"/", "/metrics/", "/metrics/x", "/targets"}) {
    EXPECT_THAT(http_get(port_of(address), path), StartsWith("HTTP/1.1 404 Not Found\r\n")) << path;
  }
  EXPECT_THAT(http_ask(port_of(address),
                       "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
}

// A page of another site whose name was made to lead here: its browser asks with that name.
TEST_F(MetricsAddressTest, OfThisMachineRejectsRequestsForAnotherHost) {
  const MetricsAddress address({.port = 0}, meters_);
  const auto reply_for = [&](const std::string& host) {
    return http_ask(port_of(address), "GET /metrics HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  };
  for (const char* const host : {"localhost", "localhost:9400", "127.0.0.1:9400", "[::1]:9400"}) {
    EXPECT_THAT(reply_for(host), StartsWith("HTTP/1.1 200 OK\r\n")) << host;
  }
  for (const char* const host : {"example.com", "example.com:9400", "localhost.example.com"}) {
    EXPECT_THAT(reply_for(host), StartsWith("HTTP/1.1 421 ")) << host;
  }
  const MetricsAddress everywhere({.port = 0, .host = "all"}, meters_);
  EXPECT_THAT(
      http_ask(port_of(everywhere), "GET /metrics HTTP/1.1\r\nHost: worker-0.mnist:9400\r\n\r\n"),
      StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(MetricsAddressTest, TellsTargetsOnceThereAreSome) {
  MetricsAddress address({.port = 0}, meters_);
  address.set_targets("[]\n");
  const std::string reply = http_get(port_of(address), "/targets");
  EXPECT_THAT(reply, HasSubstr("\r\nContent-Type: application/json\r\n"));
  EXPECT_EQ(http_body(reply), "[]\n");
}

TEST_F(MetricsAddressTest, ThatIsInUseIsASentence) {
  const MetricsAddress first({.port = 0}, meters_);
  const auto failure =
      thrown<Failure>([&] { const MetricsAddress second({.port = port_of(first)}, meters_); });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->exit_code(), kCannotListen);
  EXPECT_EQ(failure->what(),
            "--metrics_port: cannot listen on " + first.target() + ": Address already in use");
}

TEST_F(MetricsAddressTest, IsNamedAsAScraperReachesIt) {
  const MetricsAddress loopback({.port = 0}, meters_);
  EXPECT_EQ(loopback.target_at(5), "127.0.0.1:5");
  const MetricsAddress everywhere({.port = 0, .host = "all"}, meters_);
  EXPECT_THAT(everywhere.target_at(5), EndsWith(":5"));
  EXPECT_THAT(everywhere.target_at(5), Not(HasSubstr("all")));
  EXPECT_THAT(http_get(port_of(everywhere), "/metrics"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

class MetricsFile : public MetricsAddressTest {
 protected:
  [[nodiscard]] std::string path() const { return (directory_.path() / "x.prom").string(); }
  [[nodiscard]] std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const data::test::ScratchDirectory directory_;
};

TEST_F(MetricsFile, HasTheLastValues) {
  {
    const MetricsAddress address({.textfile = path()}, meters_);
    EXPECT_EQ(address.target(), "");
    meters_.trainer().step.set(7);
  }
  EXPECT_THAT(text(), HasSubstr("\ndisttf_step{task=\"worker:1\"} 7\n"));
  EXPECT_THAT(directory_.names(), testing::ElementsAre("x.prom"));
}

// node_exporter has metrics of these names itself, and would drop one of the two.
TEST_F(MetricsFile, HasNothingOfTheProcess) {
  { const MetricsAddress address({.textfile = path()}, meters_); }
  EXPECT_THAT(text(), HasSubstr("disttf_build_info"));
  EXPECT_THAT(text(), Not(HasSubstr("process_")));
}

TEST_F(MetricsFile, MayBeReadByOthers) {
  { const MetricsAddress address({.textfile = path()}, meters_); }
  EXPECT_NE(std::filesystem::status(path()).permissions() & std::filesystem::perms::others_read,
            std::filesystem::perms::none);
}

TEST_F(MetricsFile, ThatCannotBeWrittenEndsNothing) {
  { const MetricsAddress address({.textfile = path() + "/below/x.prom"}, meters_); }
  EXPECT_TRUE(directory_.names().empty());
}

}  // namespace
}  // namespace disttf::roles
