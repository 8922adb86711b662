// Which series of runs are drawn, tables and numbers as text, and what a run was.
#include "run/monitor/core/run_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "run/monitor/core/show_text.h"
#include "run/monitor/core/text_table.h"
#include "run/run_config.h"

namespace disttf::roles {
namespace {

using ViewJson = nlohmann::ordered_json;
using testing::ElementsAre;
using testing::HasSubstr;

const ViewJson kView = ViewJson::parse(R"({
  "run": {"dataset": "MNIST", "model": "mlp", "parameters": 79510, "train_steps": 40, "trainers": 2,
          "ps": 1, "mode": "sync", "began": 100, "settings": {"batch_size": 50, "height": 9}},
  "now": {"time": 140, "step": 40, "loss": 0.5},
  "series": {
    "loss": {"steps": [10, 20, 30, 40], "times": [110, 120, 130, 140], "values": [4, 2, null, 1]},
    "learning_rate": {"steps": [10], "times": [110], "values": [0.5]},
    "test_accuracy": {"steps": [20, 40], "times": [120, 140], "values": [0.5, 0.75]}},
  "tasks": [{"task": "worker:0", "host": "a", "restarts": 1,
             "stages": {"pull": 0.001, "forward": 0.25, "wait": 0.5}},
            {"task": "ps:0", "host": "b", "restarts": 0, "stages": {"apply": 0.0625}}],
  "checkpoints": [{"time": 130, "step": 30, "name": "step-0000000030", "bytes": 318040}],
  "events": [{"time": 115, "task": "worker:0", "what": "lost", "text": "worker:0 was lost"},
             {"time": 116, "task": "ps:0", "what": "saved", "text": "a\u001b[31m cut"}],
  "result": {"time": 141, "step": 40, "line": "MNIST accuracy: 0.7500"}})");

std::vector<PlottedRun> one_run() { return {{.name = "a", .view = &kView}}; }

std::vector<double> ys(const Curve& curve) {
  std::vector<double> all;
  for (const Point& point : curve.points) {
    all.push_back(point.y);
  }
  return all;
}

TEST(RunChart, HasLossAndAccuracyByItself) {
  const Chart chart = chart_of(one_run(), {});
  EXPECT_EQ(chart.title, "a: MNIST, mlp");
  EXPECT_EQ(chart.x_name, "step");
  ASSERT_EQ(chart.panels.size(), 2U);
  EXPECT_EQ(chart.panels[0].name, "loss");
  EXPECT_THAT(ys(chart.panels[0].curves[0]), ElementsAre(4, 2, 1));
  EXPECT_EQ(chart.panels[0].curves[0].points[2].x, 40);
  EXPECT_EQ(chart.panels[1].name, "accuracy");
}

TEST(RunChart, HasWhatIsAskedFor) {
  const Chart chart = chart_of(one_run(), {.series = {"learning_rate"}, .is_log = true});
  ASSERT_EQ(chart.panels.size(), 1U);
  EXPECT_TRUE(chart.panels[0].is_log);
  EXPECT_THAT(series_of(one_run()), ElementsAre("loss", "test_accuracy", "learning_rate"));
}

TEST(RunChart, SmoothsWithTheLastValues) {
  const Chart chart = chart_of(one_run(), {.series = {"loss"}, .smooth = 2});
  EXPECT_THAT(ys(chart.panels[0].curves[0]), ElementsAre(4, 3, 1.5));
}

TEST(RunChart, CountsTimeFromTheBeginning) {
  const Chart chart = chart_of(one_run(), {.series = {"test_accuracy"}, .by_time = true});
  EXPECT_EQ(chart.x_name, "seconds");
  EXPECT_EQ(chart.panels[0].curves[0].points[0].x, 20);
}

TEST(RunChart, NamesTheRunsOfSeveral) {
  const std::vector<PlottedRun> runs = {{.name = "a", .view = &kView},
                                        {.name = "b", .view = &kView}};
  const Chart chart = chart_of(runs, {});
  EXPECT_EQ(chart.title, "a, b");
  ASSERT_EQ(chart.panels[0].curves.size(), 2U);
  EXPECT_EQ(chart.panels[0].curves[1].name, "loss b");
}

TEST(RunChart, OfSomethingElseIsEmpty) {
  for (const char* wrong : {"{}", "[]", "null", R"({"series": 1})",
                            R"({"series": {"loss": {"steps": [1], "values": ["x"]}}})",
                            R"({"series": {"loss": {"steps": {}, "values": "abc"}}})"}) {
    const ViewJson view = ViewJson::parse(wrong);
    const std::vector<PlottedRun> runs = {{.name = "a", .view = &view}};
    EXPECT_THAT(series_of(runs), ElementsAre()) << wrong;
    EXPECT_TRUE(chart_of(runs, {}).panels.empty()) << wrong;
    EXPECT_NE(show_text(view, "a", {}, 80), "") << wrong;
  }
}

TEST(PlotJson, HasTheNumbers) {
  EXPECT_EQ(plot_json(one_run(), {.series = {"test_accuracy"}}),
            R"({"runs":[{"run":"a","series":{"test_accuracy":{"steps":[20,40],)"
            R"("times":[120.0,140.0],"values":[0.5,0.75]}}}]})"
            "\n");
}

TEST(ShowText, IsWhatARunWas) {
  EXPECT_EQ(show_text(kView, "a", {.columns = 60, .rows = 20}, 60),
            R"(a, MNIST, mlp, 79510 parameters, 2 trainers, 1 ps, sync
MNIST accuracy: 0.7500, step 40 of 40
began 1970-01-01T00:01:40Z, took 0:41

SETTING     VALUE
batch_size  50

loss
  4+***
   |   ******
  3+         ******
  2+               ************
   |                           ******************
  1+                                             **********
   ++-----------------+-----------------+-----------------+
   10                20                30                40
accuracy   * test_accuracy
0.8+
   |                                                  *****
0.7+                                         *********
0.6+                                *********
   |                       *********
0.5+                  *****
   ++-----------------+-----------------+-----------------+
   10                20                30                40

TASK      RESTARTS  pull ms  forward ms  wait ms  apply ms
worker:0  1         1.000    250.000     500.000  -
ps:0      0         -        -           -        62.500

CHECKPOINT       SAVED                 SIZE    WEIGHTS
step-0000000030  1970-01-01T00:02:10Z  318 kB  -

1970-01-01T00:01:55Z  worker:0 was lost
1970-01-01T00:01:56Z  ps:0: a [31m cut
)");
}

TEST(ShowText, IsCutOnATerminalAlone) {
  ViewJson view = kView;
  const std::string text(200, 'x');
  view["events"].push_back({{"time", 120}, {"what", "long"}, {"text", text}});
  EXPECT_THAT(show_text(view, "a", {.columns = 60, .rows = 20}, 60), testing::Not(HasSubstr(text)));
  EXPECT_THAT(show_text(view, "a", {.columns = 60, .rows = 20}, 0), HasSubstr(text));
}

TEST(ShowText, SettingsAreThoseThatWereGiven) {
  ViewJson settings = ViewJson::parse(to_json(RunConfig{}));
  EXPECT_EQ(changed_settings(settings).dump(), "{}");
  settings["batch_size"] = 50;
  settings["momentum"] = 0.5;
  settings["height"] = 9;          // found out, not given
  settings["from_elsewhere"] = 1;  // by a newer one
  EXPECT_EQ(changed_settings(settings).dump(), R"({"momentum":0.5,"batch_size":50})");
}

// A run of a user's program.
ViewJson program_view() {
  ViewJson view = kView;
  view["run"]["model"] = "program";
  view["series"]["images_per_second"] = view["series"]["learning_rate"];
  view["series"]["f1"] = view["series"]["learning_rate"];
  view["series"]["validation_f1"] = view["series"]["test_accuracy"];
  view["series"]["validation_accuracy"] = view["series"]["test_accuracy"];
  view["series"].erase("test_accuracy");
  return view;
}

TEST(RunChart, HasTheNumbersOfAProgram) {
  const ViewJson view = program_view();
  const std::vector<PlottedRun> runs = {{.name = "a", .view = &view}};
  EXPECT_THAT(series_of(runs), ElementsAre("loss", "validation_accuracy", "learning_rate",
                                           "images_per_second", "f1", "validation_f1"));
  const Chart chart = chart_of(runs, {.series = {"f1", "validation_f1", "images_per_second"}});
  ASSERT_EQ(chart.panels.size(), 2U);
  EXPECT_EQ(chart.panels[0].name, "f1");
  EXPECT_THAT(ys(chart.panels[0].curves[1]), ElementsAre(0.5, 0.75));
  EXPECT_EQ(chart.panels[1].name, "rows per second");
  EXPECT_EQ(chart_of(runs, {}).panels.back().name, "accuracy") << "there is no test set";
}

TEST(ShowText, HasTheNewestNumbersOfAProgram) {
  const ViewJson view = program_view();
  EXPECT_THAT(show_text(view, "a", {.columns = 60, .rows = 20}, 60),
              HasSubstr("\nNUMBER         NEWEST\n"
                        "f1             0.5\n"
                        "validation_f1  0.75\n"));
  EXPECT_THAT(show_text(kView, "a", {.columns = 60, .rows = 20}, 60),
              testing::Not(HasSubstr("NUMBER")));
}

TextTable table() {
  TextTable table = table_with("TASK ADDRESS:2 STATE SINCE:1");
  table.rows = {{"ps:0", "a:1", "running", "T1"}, {"worker:10", "b:22", "done", "T2"}};
  return table;
}

TEST(TextTable, IsAsWideAsItsCells) {
  EXPECT_EQ(text_of(table()),
            "TASK       ADDRESS  STATE    SINCE\n"
            "ps:0       a:1      running  T1\n"
            "worker:10  b:22     done     T2\n");
}

TEST(TextTable, LeavesOutColumnsWhereTheyDoNotFit) {
  EXPECT_EQ(text_of(table(), 33),
            "TASK       STATE    SINCE\nps:0       running  T1\nworker:10  done     T2\n");
  EXPECT_EQ(text_of(table(), 24), "TASK       STATE\nps:0       running\nworker:10  done\n");
  EXPECT_EQ(text_of(table(), 12), "TASK       S\nps:0       r\nworker:10  d\n");
}

TEST(TextTable, ShowsNoControlCharacters) {
  TextTable table = table_with("A");
  table.rows = {{"x\x1b[31m\ny"}, {"\xff"}, {"é"}};
  EXPECT_EQ(text_of(table), "A\nx [31m y\n?\né\n");
}

TEST(TextTable, KeepsWidthsThatItIsGiven) {
  TextTable one = table();
  one.least_widths = {12, 0, 0, 0};
  EXPECT_EQ(text_of(one, 0, false),
            "ps:0          a:1      running  T1\nworker:10     b:22     done     T2\n");
}

TEST(TextNumbers, AreShort) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(999), "999 B");
  EXPECT_EQ(bytes_text(1234), "1.2 kB");
  EXPECT_EQ(bytes_text(318'040), "318 kB");
  EXPECT_EQ(bytes_text(9.99e9), "10 GB");
  EXPECT_EQ(duration_text(42.4), "0:42");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(-1), "0:00");
  EXPECT_EQ(percent_text(0.409), "41 %");
  EXPECT_EQ(time_text(1'764'000'000), "2025-11-24T16:00:00Z");
}

TEST(TextLines, AreNoWiderThanTheyMayBe) {
  EXPECT_EQ(wrapped({"one", "two", "three"}, 0), "one, two, three\n");
  EXPECT_EQ(wrapped({"one", "two", "three"}, 9), "one, two\nthree\n");
  EXPECT_EQ(wrapped({"a long word"}, 6), "a long\n");
  EXPECT_EQ(cut_to_width("äöü", 2), "äö");
}

}  // namespace
}  // namespace disttf::roles
