// Metrics as threads change them, and as another one reads them meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "roles/trainer/shell/step_meter.h"
#include "run/monitor/shell/meters.h"
#include "run/monitor/shell/process_metrics.h"

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

}  // namespace
}  // namespace disttf::roles
