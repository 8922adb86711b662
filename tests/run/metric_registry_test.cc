// Metrics as threads change them, and as another one reads them meanwhile.
#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "roles/trainer/shell/step_meter.h"
#include "run/monitor/core/metric_text.h"
#include "run/monitor/shell/meters.h"
#include "run/monitor/shell/process_facts.h"

namespace disttf::roles {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

const MetricFamily& family_of(const std::vector<MetricFamily>& families, Metric metric) {
  return families.at(static_cast<std::size_t>(metric));
}

HistogramValue histogram_of(const MetricRegistry& metrics, Metric metric) {
  return std::get<HistogramValue>(family_of(metrics.read(), metric).samples.at(0).value);
}

TEST(MetricRegistry, CountsFromZero) {
  MetricRegistry metrics;
  Counter& counter = metrics.counter(Metric::kExamples);
  const auto value = [&metrics] {
    return std::get<std::uint64_t>(
        family_of(metrics.read(), Metric::kExamples).samples.at(0).value);
  };
  EXPECT_EQ(value(), 0U);
  counter.add(3);
  counter.add();
  EXPECT_EQ(value(), 4U);
}

TEST(MetricRegistry, LeavesOutAGaugeThatHasNoValue) {
  MetricRegistry metrics;
  Gauge& gauge = metrics.gauge(Metric::kPsReplicas);
  const auto samples = [&metrics] {
    return family_of(metrics.read(), Metric::kPsReplicas).samples.size();
  };
  EXPECT_EQ(samples(), 0U);
  gauge.set(std::numeric_limits<double>::quiet_NaN());  // is one
  EXPECT_EQ(samples(), 1U);
  gauge.clear();
  EXPECT_EQ(samples(), 0U);
}

TEST(MetricRegistry, TakesABoundIntoItsBucket) {
  MetricRegistry metrics;
  Histogram& histogram = metrics.histogram(Metric::kGradientSeconds);
  histogram.observe(microseconds(10));
  histogram.observe(microseconds(10) + nanoseconds(1));
  histogram.observe(nanoseconds(-5));  // a clock that was moved backwards
  histogram.observe(seconds(51));
  const HistogramValue value = histogram_of(metrics, Metric::kGradientSeconds);
  EXPECT_EQ(value.counts.at(0), 2U);
  EXPECT_EQ(value.counts.at(1), 1U);
  EXPECT_EQ(value.counts.back(), 1U);
  EXPECT_EQ(value.counts.size(), value.bounds.size() + 1);
  EXPECT_NEAR(value.sum, 51.000020001, 1e-9);
}

TEST(MetricRegistry, CountsStepsOfStalenessAsTheyAre) {
  MetricRegistry metrics;
  Histogram& histogram = metrics.histogram(Metric::kPsStaleness);
  for (const std::uint64_t steps : {0U, 1U, 1U, 3U}) {
    histogram.observe(steps);
  }
  const HistogramValue value = histogram_of(metrics, Metric::kPsStaleness);
  EXPECT_THAT(std::vector(value.counts.begin(), value.counts.begin() + 4),
              testing::ElementsAre(1, 2, 0, 1));
  EXPECT_EQ(value.sum, 5);
}

TEST(MetricRegistry, LosesNothingThatSeveralThreadsCount) {
  MetricRegistry metrics;
  Counter& counter = metrics.counter(Metric::kExamples);
  Histogram& histogram = metrics.histogram(Metric::kPsStaleness);
  constexpr std::uint64_t kTimes = 20'000;
  std::vector<std::thread> threads;
  for (int each = 0; each < 3; ++each) {
    threads.emplace_back([&] {
      for (std::uint64_t time = 0; time < kTimes; ++time) {
        counter.add();
        histogram.observe(time % 2);
      }
    });
  }
  for (std::size_t each = 0; each < 50; ++each) {  // while they do, also what is new
    metrics.gauge(Metric::kEvaluationLoss, {{.name = "set", .value = std::to_string(each)}}).set(1);
    EXPECT_EQ(family_of(metrics.read(), Metric::kEvaluationLoss).samples.size(), each + 1);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(counter.value(), 3 * kTimes);
  const HistogramValue value = histogram.value();
  EXPECT_EQ(std::accumulate(value.counts.begin(), value.counts.end(), std::uint64_t{0}),
            3 * kTimes);
}

TEST(MetricRegistry, MeasuresOnlyWhereATaskDoes) {
  { const Timed nobody(nullptr); }
  MetricRegistry metrics;
  Histogram& histogram = metrics.histogram(Metric::kGradientSeconds);
  { const Timed somebody(&histogram); }
  const HistogramValue value = histogram.value();
  EXPECT_EQ(std::accumulate(value.counts.begin(), value.counts.end(), std::uint64_t{0}), 1U);
}

TEST(Meters, CountBytesByDirectionAndCodec) {
  Meters meters("ps:0", "1", "generic");
  ByteMeters& bytes = meters.ps_bytes();
  EXPECT_EQ(&bytes, &meters.ps_bytes());
  bytes.sent_frame(Codec::kBf16, 100);
  bytes.received_header();
  std::uint64_t sum = 0;
  const std::vector<MetricFamily> families = meters.metrics().read();
  for (const MetricSample& sample : family_of(families, Metric::kBytes).samples) {
    const auto count = std::get<std::uint64_t>(sample.value);
    sum += count;
    if (sample.labels.at(1).value == "bf16") {
      EXPECT_EQ(count, sample.labels.at(0).value == "sent" ? 100U : 0U);
    }
  }
  EXPECT_EQ(sum, 100U + 64 + 64);
}

TEST(ProcessMetrics, AreThoseOfThisProcess) {
  std::vector<MetricFamily> families = MetricRegistry().read();
  add_process_metrics(families, 7);
  const auto value = [&families](Metric metric) {
    return std::get<double>(family_of(families, metric).samples.at(0).value);
  };
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  EXPECT_GT(value(Metric::kProcessCpu), 0);
  EXPECT_GT(value(Metric::kProcessMemory), 1e6);
  EXPECT_GE(value(Metric::kProcessOpenFds), 3);
  EXPECT_GT(value(Metric::kProcessMaxFds), value(Metric::kProcessOpenFds));
  EXPECT_EQ(value(Metric::kProcessStart), 7);
  EXPECT_LE(Meters("ps:0", "1", "generic").started(), now.count() + 60);
  EXPECT_GE(Meters("ps:0", "1", "generic").started(), now.count());
}

// A program chooses the names of its numbers, also one for each step.
TEST(StepMeter, HasAGaugeForEachNumberOfAProgram) {
  Meters meters("worker:0", "1", "avx2");
  Task task;
  task.meters = &meters;
  StepMeter meter(task);
  const auto numbers = [&meters](Metric metric) {
    std::map<std::string, double> found;
    const std::vector<MetricFamily> families = meters.metrics().read();
    for (const MetricSample& sample : family_of(families, metric).samples) {
      found[sample.labels.at(0).value] = std::get<double>(sample.value);
    }
    return found;
  };
  meter.computed(1, 0.5F, {});
  EXPECT_TRUE(numbers(Metric::kProgramNumber).empty());
  meter.computed(1, 0.5F, math::ToldNumbers{{"norm", 1}, {"f1", 2}});
  meter.computed(1, 0.5F, math::ToldNumbers{{"norm", 3}});
  const math::Evaluation told{.loss = std::nan(""), .is_told = true, .told = {{"f1", 0.75}}};
  meter.evaluated(told, told);
  EXPECT_EQ(numbers(Metric::kProgramNumber),
            (std::map<std::string, double>{{"norm", 3}, {"f1", 2}}));
  EXPECT_EQ(numbers(Metric::kProgramEvaluation), (std::map<std::string, double>{{"f1", 0.75}}));
  EXPECT_TRUE(family_of(meters.metrics().read(), Metric::kEvaluationLoss).samples.empty());
  for (int step = 0; step < 1000; ++step) {
    meter.computed(1, 0.5F, math::ToldNumbers{{"n" + std::to_string(step), 1}});
  }
  EXPECT_LE(numbers(Metric::kProgramNumber).size(), 64U);
}

// What a scraper reads, byte for byte, and which of the two formats it gets.

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
