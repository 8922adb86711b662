#include "run/monitor/core/run_view.h"

#include <gmock/gmock.h>

#include "run/monitor/core/record.h"
#include "run/monitor/core/task_metrics.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Json = nlohmann::json;

Json json_of(const RunView& view) { return Json::parse(view.json()); }

std::string step(std::uint64_t number, double loss, double time = 1) {
  return StepRecord{.step = number,
                    .loss = loss,
                    .learning_rate = 0.1,
                    .images = 100 * number,
                    .images_per_second = 1000}
      .to_line(time);
}

TEST(RunView, CollectsSeriesOfSteps) {
  RunView view;
  EXPECT_TRUE(view.take(step(100, 0.5, 11)));
  EXPECT_TRUE(view.take(step(200, 0.25, 12)));
  const Json all = json_of(view);
  EXPECT_THAT(all["series"]["loss"]["steps"], ElementsAre(100, 200));
  EXPECT_THAT(all["series"]["loss"]["times"], ElementsAre(11.0, 12.0));
  EXPECT_THAT(all["series"]["loss"]["values"], ElementsAre(0.5, 0.25));
  EXPECT_EQ(all["now"]["images"], 20000);
  EXPECT_EQ(all["id"], 2);
}

TEST(RunView, ALossThatIsNoNumberIsNoPoint) {
  RunView view;
  EXPECT_TRUE(view.take(step(1, std::nan(""))));
  EXPECT_TRUE(json_of(view)["now"]["loss"].is_null());
  EXPECT_FALSE(json_of(view)["series"].contains("loss"));
}

TEST(RunView, ASeriesStaysSmallAndEven) {
  RunView view;
  for (std::uint64_t number = 1; number <= 100'000; ++number) {
    view.take(step(number, 1));
  }
  const std::vector<std::uint64_t> steps = json_of(view)["series"]["loss"]["steps"];
  EXPECT_LE(steps.size(), Series::kMostPoints);
  EXPECT_GE(steps.size(), Series::kMostPoints / 4);
  EXPECT_LE(steps.front(), 200U);
  EXPECT_GE(steps.back(), 99'000U);
}

// It scores a step when the run is far beyond it.
TEST(RunView, AnEvaluatorThatIsLateFindsItsPlace) {
  RunView view;
  const auto evaluated = [&view](std::uint64_t number, std::size_t correct,
                                 const std::string& task) {
    math::Evaluation test;
    test.classes = 2;
    test.rows = 100;
    test.correct = correct;
    view.take(EvaluationRecord{.step = number, .test = &test, .task = task}.to_line(1));
  };
  evaluated(100, 50, "");
  evaluated(300, 70, "");
  evaluated(200, 60, "evaluator:0");
  evaluated(300, 1, "evaluator:0");  // the chief has said it
  evaluated(400, 80, "evaluator:0");
  const Json curve = json_of(view)["series"]["test_accuracy"];
  EXPECT_THAT(curve["steps"], ElementsAre(100, 200, 300, 400));
  EXPECT_THAT(curve["values"], ElementsAre(0.5, 0.6, 0.7, 0.8));
}

TEST(RunView, AResumedRunMakesItsStepsAgain) {
  RunView view;
  view.take(step(100, 3));
  view.take(step(200, 2));
  view.take(step(300, 1));
  const RunConfig config;
  view.take(RunRecord{.config = &config, .ps = 1, .step = 150, .model = "mlp"}.to_line(5));
  EXPECT_THAT(json_of(view)["series"]["loss"]["steps"], ElementsAre(100));
  view.take(step(200, 4));
  EXPECT_THAT(json_of(view)["series"]["loss"]["values"], ElementsAre(3.0, 4.0));
}

TEST(RunView, AResultIsTheEndUntilTheRunGoesOn) {
  RunView view;
  view.take(R"({"kind":"run","time":1,"step":0})");
  EXPECT_EQ(json_of(view)["run"]["state"], "training");
  view.take(R"({"kind":"result","time":2,"step":10,"line":"accuracy: 0.9"})");
  EXPECT_EQ(json_of(view)["run"]["state"], "finished");
  view.take(R"({"kind":"run","time":3,"step":10})");
  EXPECT_EQ(json_of(view)["run"]["state"], "training");
  EXPECT_TRUE(json_of(view)["result"].is_null());
}

TEST(RunView, ATaskIsWhatIsNewestOfIt) {
  RunView view;
  view.take(
      TaskRecord{.task = "worker:1", .address = "h:1", .state = "running", .pid = 5}.to_line(1));
  view.take(
      R"({"kind":"metrics","time":2,"task":"worker:1","step":9,"stages":{"forward":0.01,"wait":0.03}})");
  view.take(
      R"({"kind":"frontier","time":2,"slowest":{"task":"worker:0","stage":"backward","slower":0.41}})");
  const Json task = json_of(view)["tasks"][0];
  EXPECT_EQ(task["state"], "running");
  EXPECT_EQ(task["step"], 9);
  EXPECT_EQ(task["doing"], "waits for worker:0");
  EXPECT_DOUBLE_EQ(task["wait_share"], 0.75);
  EXPECT_EQ(view.slowest(), "worker:0 is 41 % slower: backward");
  view.take(
      R"({"kind":"frontier","time":2,"slowest":{"task":"ps:0","stage":"apply","slower":0.41,"than":"its fastest"}})");
  EXPECT_EQ(view.slowest(), "ps:0 is 41 % slower than at its fastest: apply");
  view.take(R"({"kind":"frontier","time":3,"slowest":null})");
  EXPECT_EQ(view.slowest(), "");
}

TEST(RunView, IgnoresWhatIsNoRecord) {
  RunView view;
  for (const char* const line :
       {"", "{", "[]", "null", R"({"kind":"step"})", R"({"kind":"new","time":1})", R"({"time":1})",
        R"({"kind":5,"time":1})", R"({"kind":"step","time":"x"})", "\xff{\"kind\":\"step\"}"}) {
    EXPECT_FALSE(view.take(line)) << line;
  }
  EXPECT_FALSE(view.take(R"({"kind":"step","time":1,"x":")" + std::string(5000, 'x') + "\"}"));
  EXPECT_FALSE(view.take(R"({"kind":"step","time":1,"x":)" + std::string(1500, '[') +
                         std::string(1500, ']') + "}"));
  EXPECT_EQ(view.id(), 0U);
}

TEST(RunView, FieldsOfAnotherTypeAreLeftOut) {
  RunView view;
  for (const char* const line :
       {R"({"kind":"step","time":1,"step":"x","loss":[]})",
        R"({"kind":"evaluation","time":1,"step":-1,"validation":5,"test":{"loss":"x"}})",
        R"({"kind":"confusion","time":1,"class":99999999,"counts":[1]})",
        R"({"kind":"confusion","time":1,"class":1,"counts":7})",
        R"({"kind":"picture","time":1,"set":"other","index":1})",
        R"({"kind":"picture","time":1,"set":"wrong","index":4000000000})",
        R"({"kind":"task","time":1,"task":5})", R"({"kind":"frontier","time":1,"slowest":5})",
        R"({"kind":"metrics","time":1,"task":"a","stages":[1]})",
        R"({"kind":"metrics","time":1,"task":"b","stages":{"wait":"x","push":{}}})",
        R"({"kind":"run","time":1,"step":"x","state":5})",
        R"({"kind":"state","time":1,"state":5})"}) {
    view.take(line);
    EXPECT_FALSE(view.json().empty()) << line;
    EXPECT_EQ(view.slowest(), "") << line;
  }
}

TEST(RunView, KeepsTheNewestEvents) {
  RunView view;
  for (int number = 0; number < 600; ++number) {
    view.take(
        EventRecord{.task = "worker:1", .what = "lost", .text = std::to_string(number)}.to_line(1));
  }
  const Json events = json_of(view)["events"];
  ASSERT_EQ(events.size(), RunView::kMostEvents);
  EXPECT_EQ(events.back()["text"], "599");
}

TEST(Record, AnEvaluationIsALineAClass) {
  math::Evaluation test{
      .loss = 0.5, .correct = 3, .rows = 4, .classes = 2, .confusion = {2, 0, 1, 1}};
  RunView view;
  view.take(
      EvaluationRecord{.step = 7, .is_last = true, .validation = &test, .test = &test}.to_line(1));
  for (const std::string& line : confusion_lines(test, 7, 1)) {
    EXPECT_TRUE(view.take(line));
  }
  const Json all = json_of(view);
  EXPECT_THAT(all["series"]["test_accuracy"]["values"], ElementsAre(0.75));
  EXPECT_THAT(all["confusion"]["counts"], ElementsAre(ElementsAre(2, 0), ElementsAre(1, 1)));
}

TEST(Record, NoLineIsLongerThanAPipeTakesWhole) {
  const RunConfig config;
  const std::string name(10'000, 'x');
  const std::vector<std::string> lines = {
      RunRecord{.config = &config, .model = "mlp"}.to_line(1),
      EventRecord{.task = "worker:1", .what = "failed", .text = name}.to_line(1),
      TaskRecord{.task = "worker:1", .address = name, .state = "running"}.to_line(1),
      PictureRecord{
          .set = "wrong", .label = {}, .answer = {}, .png = std::as_bytes(std::span(name))}
          .to_line(1)};
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), kMaxRecordBytes);
  }
  EXPECT_THAT(lines[0], HasSubstr("\"settings\""));
  EXPECT_EQ(lines[3], "") << "a picture that is cut is none";
}

TEST(Record, PicturesAreInBase64) {
  const std::array bytes = {std::byte{'M'}, std::byte{'a'}, std::byte{'n'}, std::byte{'y'}};
  EXPECT_THAT((PictureRecord{.set = "wrong", .label = {}, .answer = {}, .png = bytes}.to_line(1)),
              HasSubstr("\"TWFueQ==\""));
  EXPECT_THAT(
      (PictureRecord{.set = "wrong", .label = {}, .answer = {}, .png = std::span(bytes).first(3)}
           .to_line(1)),
      HasSubstr("\"TWFu\""));
}

TrainerMetrics trainer_metrics() {
  TrainerMetrics metrics{
      .task = {.job = net::Job::kWorker, .index = 1},
      .process = {.host = "node7", .pid = 12, .resident_bytes = 1 << 20, .cpu_seconds = 1.5},
      .isa = "avx2",
      .threads = 2,
      .step = 40,
      .pushes = 41,
      .dropped = 1,
      .samples = {}};
  metrics.samples.push_back({.step = 32,
                             .seconds = {0.001F, 0, 0.01F, 0.02F, 0.0005F, 0.003F, 0},
                             .last_ps = {.index = 1, .seconds = 0.004F}});
  return metrics;
}

TEST(TaskMetrics, ATrainersTextIsReadBack) {
  const auto read = trainer_metrics_from_json(to_json(trainer_metrics()));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->task, trainer_metrics().task);
  EXPECT_EQ(read->process.host, "node7");
  EXPECT_EQ(read->pushes, 41U);
  ASSERT_EQ(read->samples.size(), 1U);
  EXPECT_EQ(read->samples[0].step, 32U);
  EXPECT_NEAR(read->samples[0].of(Stage::kBackward), 0.02F, 1e-6F);
  EXPECT_EQ(read->samples[0].last_ps.index, 1U);
  EXPECT_NEAR(read->samples[0].last_ps.seconds, 0.004F, 1e-6F);
}

TEST(TaskMetrics, ATrainerThatDoesNotTellWhichPsWasLastIsRead) {
  std::string text = to_json(trainer_metrics());
  const std::string last = ",1,4000]]";
  ASSERT_NE(text.find(last), std::string::npos) << text;
  text.replace(text.find(last), last.size(), "]]");
  const auto read = trainer_metrics_from_json(text);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->samples.size(), 1U);
  EXPECT_EQ(read->samples[0].last_ps, LastPs());
  EXPECT_NEAR(read->samples[0].of(Stage::kWait), 0.003F, 1e-6F);
}

TEST(TaskMetrics, APsTextIsReadBack) {
  PsMetrics metrics;
  metrics.task = {.job = net::Job::kPs, .index = 0};
  metrics.step = 9;
  metrics.generation = 2;
  metrics.range_begin = 16;
  metrics.range_end = 64;
  metrics.replica_role = "primary";
  metrics.has_backup = true;
  metrics.present = {true, false, true};
  metrics.samples.push_back({.step = 8, .apply = 0.002F, .arrived = {0.01F, -1.0F, 0.02F}});
  const auto read = ps_metrics_from_json(to_json(metrics));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->range_end, 64U);
  EXPECT_THAT(read->present, ElementsAre(true, false, true));
  ASSERT_EQ(read->samples.size(), 1U);
  EXPECT_LT(read->samples[0].arrived[1], 0) << "it has not come";
  EXPECT_THAT(to_line(metrics, 1), HasSubstr(R"("standing":"primary")"));
}

TEST(TaskMetrics, TheOldestSamplesAreLeftOutWhereTheyDoNotFit) {
  PsMetrics metrics;
  metrics.task = {.job = net::Job::kPs, .index = 0};
  for (std::uint64_t step = 0; step < 64; ++step) {
    metrics.samples.push_back(
        {.step = step, .apply = 0, .arrived = std::vector<float>(1000, 0.5F)});
  }
  const std::string text = to_json(metrics);
  EXPECT_LE(text.size(), net::kMaxMetricsBytes);
  const auto read = ps_metrics_from_json(text);
  ASSERT_TRUE(read);
  ASSERT_FALSE(read->samples.empty());
  EXPECT_EQ(read->samples.back().step, 63U);
}

TEST(TaskMetrics, WhatIsNoneIsRefused) {
  const std::string good = to_json(trainer_metrics());
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_EQ(trainer_metrics_from_json(good.substr(0, cut)), std::nullopt);
  }
  for (const char* const text :
       {"null", "[]", R"({"task":"x:1"})", R"({"task":"worker:99999999999"})", R"({"task":5})"}) {
    EXPECT_EQ(trainer_metrics_from_json(text), std::nullopt) << text;
    EXPECT_EQ(ps_metrics_from_json(text), std::nullopt) << text;
  }
}

// A program chooses the names of its numbers.
TEST(RunView, HasASeriesOfEachNumberOfAProgram) {
  RunView view;
  math::Evaluation told{.loss = 0.5, .is_told = true, .told = {{"f1", 0.75}}};
  const math::ToldNumbers numbers = {{"norm", 2}, {"loss", 9}, {"__proto__", 1}};
  view.take(StepRecord{.step = 1, .loss = 3, .numbers = numbers}.to_line(1));
  view.take(EvaluationRecord{.step = 1, .validation = &told}.to_line(1));
  const Json all = json_of(view);
  EXPECT_THAT(all["series"]["norm"]["values"], ElementsAre(2.0));
  EXPECT_THAT(all["series"]["__proto__"]["values"], ElementsAre(1.0));
  EXPECT_THAT(all["series"]["validation_f1"]["values"], ElementsAre(0.75));
  EXPECT_THAT(all["series"]["loss"]["values"], ElementsAre(3.0)) << "a name that has a meaning";
  EXPECT_EQ(all["now"]["numbers"]["norm"], 2.0);
}

TEST(RunView, KeepsFewSeriesOfManyNames) {
  RunView view;
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    const math::ToldNumbers numbers = {{"n" + std::to_string(number), 1}};
    view.take(StepRecord{.step = number, .numbers = numbers}.to_line(1));
  }
  EXPECT_EQ(json_of(view)["series"].size(), RunView::kMostSeries);
}

}  // namespace
}  // namespace disttf::roles
