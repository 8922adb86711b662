// What a scraper reads, byte for byte, and which of the two formats it gets.
#include "run/monitor/core/metric_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <string>

namespace disttf::roles {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

using enum ExpositionFormat;

std::string text_of(const MetricFamily& family, ExpositionFormat format = kText) {
  return exposition(std::array{family}, "worker:1", format);
}

MetricFamily counted() {
  return {.metric = Metric::kExamples,
          .samples = {{.labels = {}, .value = std::uint64_t{18446744073709551615U}}}};
}

TEST(MetricText, OfACounterIsCalledAsItsSamplesAre) {
  EXPECT_EQ(text_of(counted()),
            "# HELP disttf_examples_total Examples for which this trainer has computed gradients\n"
            "# TYPE disttf_examples_total counter\n"
            "disttf_examples_total{task=\"worker:1\"} 18446744073709551615\n");
}

TEST(MetricText, OfACounterInOpenMetricsIsCalledWithoutTotal) {
  EXPECT_EQ(text_of(counted(), kOpenMetrics),
            "# HELP disttf_examples Examples for which this trainer has computed gradients\n"
            "# TYPE disttf_examples counter\n"
            "disttf_examples_total{task=\"worker:1\"} 18446744073709551615\n"
            "# EOF\n");
}

TEST(MetricText, OfAnInfoIsAGaugeAndInOpenMetricsAnInfo) {
  const MetricFamily family{
      .metric = Metric::kBuildInfo,
      .samples = {{.labels = {{.name = "version", .value = "1"}}, .value = 1.0}}};
  EXPECT_THAT(text_of(family), HasSubstr("# TYPE disttf_build_info gauge\n"
                                         "disttf_build_info{task=\"worker:1\",version=\"1\"} 1\n"));
  EXPECT_THAT(text_of(family, kOpenMetrics),
              HasSubstr("# TYPE disttf_build info\n"
                        "disttf_build_info{task=\"worker:1\",version=\"1\"} 1\n"));
}

TEST(MetricText, NamesTheUnitInOpenMetricsAlone) {
  const MetricFamily family{
      .metric = Metric::kBytes,
      .samples = {{.labels = {{.name = "codec", .value = "f32"}}, .value = std::uint64_t{5}}}};
  EXPECT_THAT(text_of(family, kOpenMetrics),
              HasSubstr("# TYPE disttf_transferred_bytes counter\n"
                        "# UNIT disttf_transferred_bytes bytes\n"
                        "disttf_transferred_bytes_total{task=\"worker:1\",codec=\"f32\"} 5\n"));
  EXPECT_THAT(text_of(family), Not(HasSubstr("UNIT")));
}

TEST(MetricText, OfAHistogramIsCumulativeAndEndsWithInfinity) {
  constexpr std::array kBounds = {0.00001, 0.5, 1.0};
  const MetricFamily family{
      .metric = Metric::kGradientSeconds,
      .samples = {
          {.labels = {},
           .value = HistogramValue{.bounds = kBounds, .counts = {1, 0, 2, 3}, .sum = 7.25}}}};
  EXPECT_THAT(text_of(family),
              EndsWith("disttf_gradient_seconds_bucket{task=\"worker:1\",le=\"1e-05\"} 1\n"
                       "disttf_gradient_seconds_bucket{task=\"worker:1\",le=\"0.5\"} 1\n"
                       "disttf_gradient_seconds_bucket{task=\"worker:1\",le=\"1.0\"} 3\n"
                       "disttf_gradient_seconds_bucket{task=\"worker:1\",le=\"+Inf\"} 6\n"
                       "disttf_gradient_seconds_sum{task=\"worker:1\"} 7.25\n"
                       "disttf_gradient_seconds_count{task=\"worker:1\"} 6\n"));
}

TEST(MetricText, WritesWhatIsNoNumberAsPrometheusReadsIt) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto loss = [](double value) {
    return text_of({.metric = Metric::kLoss, .samples = {{.labels = {}, .value = value}}});
  };
  EXPECT_THAT(loss(std::nan("")), EndsWith("} NaN\n"));
  EXPECT_THAT(loss(kInfinity), EndsWith("} +Inf\n"));
  EXPECT_THAT(loss(-kInfinity), EndsWith("} -Inf\n"));
  EXPECT_THAT(loss(1e-300), EndsWith("} 1e-300\n"));
}

TEST(MetricText, EscapesValuesOfLabels) {
  EXPECT_THAT(exposition(std::array{counted()}, "a\\b\"c\nd", kText),
              HasSubstr("{task=\"a\\\\b\\\"c\\nd\"}"));
}

TEST(MetricText, LeavesOutWhatHasNoSamples) {
  EXPECT_EQ(text_of({.metric = Metric::kLoss, .samples = {}}), "");
  EXPECT_EQ(text_of({.metric = Metric::kLoss, .samples = {}}, kOpenMetrics), "# EOF\n");
}

TEST(MetricText, IsOpenMetricsWhereThatIsAskedForAndNotLikedLess) {
  // What Prometheus 2.42 and 3 send.
  EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0,application/openmetrics-text;"
                       "version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"),
            kOpenMetrics);
  EXPECT_EQ(format_for("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                       "application/openmetrics-text;version=0.0.1;q=0.5,"
                       "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
                       "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"),
            kOpenMetrics);
  EXPECT_EQ(format_for("Application/OpenMetrics-Text ; Version=1.0.0"), kOpenMetrics);
  EXPECT_EQ(format_for("application/openmetrics-text"), kOpenMetrics);
}

TEST(MetricText, IsTextForAllOtherClients) {
  for (const char* const accept :
       {"", "*/*", "text/plain", "text/html,application/xhtml+xml",
        "application/openmetrics-text;version=0.0.1", "application/openmetrics-text;version=2.0.0",
        "application/openmetrics-text;version=1.0.0;q=0", "application/openmetrics-text;q=x",
        "application/openmetrics-text;version=1.0.0;q=0.3,text/plain;q=0.5", ",;=,q=;;",
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily"}) {
    EXPECT_EQ(format_for(accept), kText) << accept;
  }
}

// mime.ParseMediaType of Go, by which Prometheus 3 reads it: type/subtype, then "; key=value".
TEST(MetricText, HasAContentTypeThatPrometheus3Reads) {
  EXPECT_EQ(content_type_of(kText), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_EQ(content_type_of(kOpenMetrics),
            "application/openmetrics-text; version=1.0.0; charset=utf-8");
}

TEST(MetricTable, NamesMetricsByTheConventions) {
  std::set<std::string_view> names;
  for (const MetricRow& row : metric_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_TRUE(row.name.starts_with("disttf_") || row.name.starts_with("process_")) << row.name;
    EXPECT_EQ(row.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
    EXPECT_TRUE(row.name.ends_with(row.unit)) << row.name;
    EXPECT_FALSE(row.name.ends_with("_total") || row.name.ends_with("_info")) << row.name;
    EXPECT_FALSE(row.help.empty()) << row.name;
  }
}

TEST(MetricTable, HasBucketsThatAscend) {
  for (const MetricRow& row : metric_rows()) {
    if (row.type == MetricType::kHistogram) {
      const auto bounds = bounds_of(row.metric);
      EXPECT_TRUE(std::ranges::is_sorted(bounds, std::less_equal<>())) << row.name;
      EXPECT_EQ(bounds.front(), row.unit == "seconds" ? 0.00001 : 0.0) << row.name;
    }
  }
}

}  // namespace
}  // namespace disttf::roles
