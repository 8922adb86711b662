#include "run/monitor/core/task_metrics.h"

#include <gmock/gmock.h>

namespace disttf::roles {
namespace {

using testing::FloatNear;
using testing::HasSubstr;
using testing::Not;

TrainerMetrics trainer() {
  return {.task = {.job = net::Job::kWorker, .index = 3},
          .process = {.host = "node-7",
                      .pid = 4711,
                      .resident_bytes = 1'000'000,
                      .cpu_seconds = 1.5,
                      .bytes_sent = 5000,
                      .bytes_received = 6000,
                      .clock = "0a1b2c3d-4026531834"},
          .isa = "avx512",
          .threads = 2,
          .step = 821,
          .pushes = 800,
          .dropped = 1,
          .samples = {{.step = 820, .seconds = {1e-3F, 0, 2e-3F, 3e-3F, 0, 4e-3F, 0}}}};
}

PsMetrics ps() {
  return {.task = {.job = net::Job::kPs, .index = 1},
          .process = {},
          .step = 821,
          .generation = 2,
          .range_begin = 100,
          .range_end = 200,
          .pushes = 1600,
          .applied = 800,
          .repeats = 3,
          .dropped = 1,
          .staleness_sum = 400,
          .replica_role = "primary",
          .has_backup = true,
          .view = 2,
          .lag_updates = 3,
          .present = {true, false},
          .samples = {{.step = 820, .apply = 1e-3F, .arrived = {2e-3F, -1}}}};
}

TEST(TaskMetrics, OfATrainerAreReadBack) {
  const auto read = trainer_metrics_from_json(to_json(trainer()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->task, trainer().task);
  EXPECT_EQ(read->process.host, "node-7");
  EXPECT_EQ(read->process.pid, 4711);
  EXPECT_EQ(read->process.bytes_sent, 5000U);
  EXPECT_EQ(read->process.bytes_received, 6000U);
  EXPECT_EQ(read->step, 821U);
  EXPECT_EQ(read->dropped, 1U);
  ASSERT_EQ(read->samples.size(), 1U);
  EXPECT_THAT(read->samples[0].of(Stage::kBackward), FloatNear(3e-3F, 1e-6F));
  EXPECT_FALSE(ps_metrics_from_json(to_json(trainer())));
}

TEST(TaskMetrics, HaveTheFingerprintOfAProgramUnlessItIsLong) {
  TrainerMetrics told = trainer();
  EXPECT_EQ(to_json(told).find("fingerprint"), std::string::npos);
  told.fingerprint = {{"threads", "2"}, {"torch", "2.9"}};
  EXPECT_EQ(trainer_metrics_from_json(to_json(told))->fingerprint, told.fingerprint);
  for (int key = 0; key < 32; ++key) {
    told.fingerprint[std::to_string(key)] = std::string(256, 'x');
  }
  const auto read = trainer_metrics_from_json(to_json(told));
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->fingerprint.empty());
  EXPECT_EQ(read->samples.size(), told.samples.size());
}

TEST(TaskMetrics, OfAPsAreReadBack) {
  const auto read = ps_metrics_from_json(to_json(ps()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->task, ps().task);
  EXPECT_EQ(read->range_end, 200U);
  EXPECT_EQ(read->lag_updates, 3U);
  EXPECT_EQ(read->staleness_sum, 400U);
  EXPECT_EQ(read->present, (std::vector<bool>{true, false}));
  EXPECT_LT(read->samples.at(0).arrived.at(1), 0);
  EXPECT_FALSE(trainer_metrics_from_json(to_json(ps())));
}

TEST(TaskMetrics, TracedStepsAreExact) {
  TrainerMetrics told = trainer();
  told.has_more_traced = true;
  told.traced = {{.step = 900, .seconds = {1.5e-6F, 0, 2e-3F}, .began = 123'456'789'012'345}};
  const auto read = trainer_metrics_from_json(to_json(told));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->process.clock, told.process.clock);
  EXPECT_TRUE(read->has_more_traced);
  EXPECT_EQ(read->traced, told.traced);

  PsMetrics told_by_ps = ps();
  told_by_ps.traced = {{.step = 900,
                        .apply = 1.5e-6F,
                        .arrived = {2e-6F, -1e-9F},
                        .began = 123'456'789'012'345,
                        .waited = 3e-3F}};
  const auto read_ps = ps_metrics_from_json(to_json(told_by_ps));
  ASSERT_TRUE(read_ps);
  EXPECT_FALSE(read_ps->has_more_traced);
  EXPECT_EQ(read_ps->traced, told_by_ps.traced);
}

TEST(TaskMetrics, WhereNothingIsTracedNothingIsSaidOfIt) {
  EXPECT_THAT(to_json(trainer()), Not(HasSubstr("trace")));
}

// The longest possible metrics: measured steps leave room for traced ones.
TEST(TaskMetrics, FitWhateverIsTold) {
  TrainerMetrics told = trainer();
  const TrainerSample longest{
      .step = ~0ULL >> 11U, .seconds = {9, 9, 9, 9, 9, 9, 9}, .began = 1LL << 58};
  told.samples.assign(StepSampling::kMost, longest);
  told.traced.assign(kMostTracedAtOnce, longest);
  const std::string text = to_json(told);
  EXPECT_LE(text.size(), net::kMaxMetricsBytes);
  EXPECT_EQ(trainer_metrics_from_json(text)->traced.size(), kMostTracedAtOnce);

  for (const std::size_t trainers : {1U, 10U, 100U, 400U}) {
    PsMetrics told_by_ps = ps();
    told_by_ps.present.assign(trainers, true);
    const RangeSample each{.step = ~0ULL >> 11U,
                           .apply = 9,
                           .arrived = std::vector<float>(trainers, 9.0F),
                           .began = 1LL << 58,
                           .waited = 9};
    told_by_ps.samples.assign(StepSampling::kMost, each);
    told_by_ps.traced.assign(most_traced_at_once(trainers), each);
    const std::string text_of_ps = to_json(told_by_ps);
    EXPECT_LE(text_of_ps.size(), net::kMaxMetricsBytes) << trainers;
    EXPECT_EQ(ps_metrics_from_json(text_of_ps)->traced.size(), most_traced_at_once(trainers));
  }
}

TEST(TaskMetrics, WhatIsNoneIsNothing) {
  const std::string good = to_json(trainer());
  EXPECT_TRUE(trainer_metrics_from_json(good));
  const auto with = [&good](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return trainer_metrics_from_json(text);
  };
  EXPECT_FALSE(with("\"worker:3\"", "\"worker\""));
  EXPECT_FALSE(with("\"worker:3\"", "\"worker:99999999999999999999\""));
  EXPECT_FALSE(with("\"pid\":4711", "\"pid\":\"x\""));
  // JSON allows these numbers, but they are out of range or of another type here.
  for (const char* number : {"2e67", "-1e300", "20000000000000000000000", "1.5", "true"}) {
    EXPECT_FALSE(with("\"pid\":4711", std::string("\"pid\":") + number)) << number;
    EXPECT_FALSE(with("\"threads\":", std::string("\"threads\":") + number + ",\"x\":")) << number;
  }
  EXPECT_FALSE(with("\"threads\":", "\"threads\":-1,\"x\":"));
  EXPECT_FALSE(with("\"samples\":[[", "\"samples\":[[[[["));
  EXPECT_FALSE(with("{", "{\"trace\":{},"));
  EXPECT_FALSE(with("{", "{\"trace\":{\"clock\":\"a\",\"more\":false,\"steps\":[[1]]},"));
  EXPECT_FALSE(trainer_metrics_from_json(""));
  EXPECT_FALSE(trainer_metrics_from_json(good.substr(0, good.size() - 1)));
}

TEST(TaskMetrics, ARecordHasTheMeansOfItsStages) {
  TrainerMetrics told = trainer();
  told.samples.push_back({.step = 821, .seconds = {3e-3F, 0, 2e-3F, 5e-3F, 0, 4e-3F, 0}});
  EXPECT_THAT(to_line(told, 12.5), HasSubstr(R"({"kind":"metrics","time":12.5,"task":"worker:3")"));
  EXPECT_THAT(to_line(told, 12.5), HasSubstr(R"("stages":{"pull":0.002)"));
  EXPECT_THAT(to_line(ps(), 12.5), HasSubstr(R"("staleness":0.5,"standing":"primary")"));
}

}  // namespace
}  // namespace disttf::roles
