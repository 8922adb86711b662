// Axes, and curves as text and as SVG.
#include "run/monitor/core/chart.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "run/monitor/core/run_chart.h"
#include "run/monitor/core/show_text.h"
#include "run/monitor/core/text_table.h"
#include "run/run_config.h"

namespace disttf::roles {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> names_of(const Axis& axis) {
  std::vector<std::string> names;
  for (const Tick& tick : axis.ticks) {
    names.push_back(tick.name);
  }
  return names;
}

TEST(Axis, HasRoundTicks) {
  EXPECT_THAT(names_of(linear_axis(0.03, 0.97, 5, true)),
              ElementsAre("0", "0.2", "0.4", "0.6", "0.8", "1.0"));
  EXPECT_THAT(names_of(linear_axis(-3, 4, 4, true)), ElementsAre("-4", "-2", "0", "2", "4"));
  EXPECT_THAT(names_of(linear_axis(0, 19'999, 4, true)),
              ElementsAre("0", "5k", "10k", "15k", "20k"));
  EXPECT_THAT(names_of(linear_axis(0, 2.5e7, 3, true)), ElementsAre("0", "10M", "20M", "30M"));
  EXPECT_THAT(names_of(linear_axis(0, 4e-6, 4, true)),
              ElementsAre("0", "1e-06", "2e-06", "3e-06", "4e-06"));
}

TEST(Axis, BeginsAndEndsWithATickWhereItIsWidened) {
  const Axis wide = linear_axis(0.12, 0.58, 5, true);
  EXPECT_DOUBLE_EQ(wide.least, 0.1);
  EXPECT_DOUBLE_EQ(wide.most, 0.6);
  const Axis close = linear_axis(0.12, 0.58, 5, false);
  EXPECT_DOUBLE_EQ(close.least, 0.12);
  EXPECT_DOUBLE_EQ(close.most, 0.58);
  EXPECT_DOUBLE_EQ(close.place_of(0.35), 0.5);
}

TEST(Axis, HasRoomAroundASingleValue) {
  for (const double value : {0.0, 1.0, -7.0, 1e-300, 1e30, -1e30}) {
    const Axis axis = linear_axis(value, value, 5, true);
    EXPECT_LT(axis.least, value);
    EXPECT_GT(axis.most, value);
    EXPECT_LE(axis.ticks.size(), 12U);
  }
}

TEST(Axis, EndsWhateverItSpans) {
  for (const double least : {-1e30, -1.0, 0.0, 1e-300, 1.0}) {
    for (const double most : {1.0 + 1e-12, 7.0, 1e15, 1e30}) {
      const Axis axis = linear_axis(least, most, 6, true);
      EXPECT_LT(axis.least, axis.most);
      EXPECT_GE(axis.ticks.size(), 2U);
      EXPECT_LE(axis.ticks.size(), 12U);
    }
  }
}

TEST(LogAxis, HasPowersOfTen) {
  EXPECT_THAT(names_of(log_axis(0.002, 700, 6)),
              ElementsAre("0.001", "0.01", "0.1", "1", "10", "100", "1000"));
  EXPECT_THAT(names_of(log_axis(0.03, 0.4, 6)), ElementsAre("0.02", "0.05", "0.1", "0.2", "0.5"));
  const Axis axis = log_axis(1, 100, 2);
  EXPECT_DOUBLE_EQ(axis.place_of(10), 0.5);
}

TEST(LogAxis, SpansAll) {
  for (const double least : {1e-300, 1e-30, 0.5, 1.0, 999.0}) {
    for (const double most : {999.0, 1e4, 1e30}) {
      const Axis axis = log_axis(least, most, 5);
      EXPECT_LE(axis.least, least * (1 + 1e-9));
      EXPECT_GE(axis.most, most * (1 - 1e-9));
      EXPECT_LT(axis.least, axis.most);
      EXPECT_LE(axis.ticks.size(), 12U) << least << " " << most;
    }
  }
}

Chart falling() {
  Chart chart{.title = "run", .x_name = "step", .panels = {}};
  Panel& panel = chart.panels.emplace_back();
  panel.name = "loss";
  Curve& curve = panel.curves.emplace_back();
  curve.name = "loss";
  for (int each = 0; each <= 10; ++each) {
    curve.points.push_back({each * 10.0, 1.0 - each * 0.1});
  }
  return chart;
}

Chart crossing() {
  Chart chart = falling();
  Curve other{.name = "b", .points = chart.panels[0].curves[0].points};
  for (Point& point : other.points) {
    point.y = 1 - point.y;
  }
  chart.panels[0].curves[0].name = "a";
  chart.panels[0].curves.push_back(std::move(other));
  return chart;
}

TEST(ChartText, IsDrawnInBrailleWhereThatIsShown) {
  EXPECT_EQ(text_of(falling(), {.columns = 30, .rows = 10, .unicode = true}),
            R"(run
loss
1.0┤⠉⠒⠤⢄⡀
   │    ⠈⠉⠒⠤⢄⡀
0.5┤         ⠈⠉⠒⠤⢄⣀⡀
   │               ⠈⠑⠒⠤⣀⡀
  0┤                    ⠈⠑⠒⠤⣀
   └┬───────────┬───────────┬
    0          50          100
)");
}

TEST(ChartText, IsDrawnInLettersWhereThatIsNot) {
  EXPECT_EQ(text_of(crossing(), {.columns = 30, .rows = 10}),
            R"(run
loss   * a   + b
1.0+****                 ++++
   |    *****       +++++
0.5+         +++++++
   |    +++++       *****
  0+++++                 ****
   ++-----------+-----------+
    0          50          100
)");
}

TEST(ChartText, TellsCurvesApartByColourWhereThereAreColours) {
  const std::string text =
      text_of(crossing(), {.columns = 40, .rows = 12, .unicode = true, .colour = true});
  EXPECT_THAT(text, HasSubstr("\x1b[34m⣿\x1b[0m a   \x1b[31m⣿\x1b[0m b"));
  EXPECT_THAT(text, Not(HasSubstr("*")));
  const std::string letters = text_of(crossing(), {.columns = 40, .rows = 12, .unicode = true});
  EXPECT_THAT(letters, HasSubstr("loss   * a   + b\n"));
  EXPECT_THAT(letters, Not(HasSubstr("\x1b")));
}

TEST(ChartText, IsNoWiderThanTheTerminal) {
  for (std::size_t columns = 20; columns < 100; ++columns) {
    const std::string text = text_of(crossing(), {.columns = columns, .rows = 24});
    std::size_t begin = 0;
    for (std::size_t end = text.find('\n'); end != std::string::npos;
         end = text.find('\n', begin)) {
      EXPECT_LE(end - begin, columns);
      begin = end + 1;
    }
  }
}

TEST(ChartText, OfNothingIsASentence) {
  Chart chart = falling();
  chart.panels[0].is_log = true;
  chart.panels[0].curves[0].points = {{1, 0}, {2, -1}};
  EXPECT_EQ(text_of(chart, {}),
            "run\n"
            "loss: nothing to show\n");
}

TEST(Sparkline, IsOneCharacterForEachValueOrShareOfThem) {
  const std::vector<double> values = {0, 1, 2, 3, 4, 5, 6, 7};
  EXPECT_EQ(sparkline(values, 8, true), "▁▂▃▄▅▆▇█");
  EXPECT_EQ(sparkline(values, 40, false), "_.-=+*%#");
  EXPECT_EQ(sparkline(values, 2, true), "▁█");
  EXPECT_EQ(sparkline(std::vector<double>{3, 3}, 8, true), "▁▁");
  EXPECT_EQ(sparkline({}, 8, true), "");
}

TEST(ChartSvg, IsTheSameBytesEachTime) {
  const std::string svg = svg_of(crossing());
  EXPECT_EQ(svg, svg_of(crossing()));
  EXPECT_THAT(svg, HasSubstr("<polyline class=\"curve c0\" points=\"70.00,60.00 141.00,84.00 "));
  EXPECT_THAT(svg, HasSubstr("780.00,300.00\"><title>a</title></polyline>\n"));
  EXPECT_THAT(svg, HasSubstr("<polyline class=\"curve c1\" stroke-dasharray=\"8 4\" points=\"70.00,"
                             "300.00 141.00,276.00 "));
  EXPECT_THAT(svg, HasSubstr("<text x=\"62.00\" y=\"304.00\" text-anchor=\"end\">0</text>\n"));
  EXPECT_THAT(svg, HasSubstr("@media (prefers-color-scheme: dark)"));
}

TEST(ChartSvg, HasAPointWhereThereIsOne) {
  Chart chart = falling();
  chart.panels[0].curves[0].points.resize(1);
  EXPECT_THAT(svg_of(chart), HasSubstr("<circle class=\"curve c0\" cx=\"425.00\" cy=\"180.00\""));
}

TEST(ChartSvg, EscapesWhatOthersHaveWritten) {
  Chart chart = falling();
  chart.title = "<script>&\x01\xff";
  EXPECT_THAT(svg_of(chart), HasSubstr("<title>&lt;script&gt;&amp; ?</title>"));
}

// Which series of runs are drawn, tables and numbers as text, and what a run was.

using ViewJson = nlohmann::ordered_json;

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
