// Axes, and curves as text and as SVG.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run/monitor/core/axis.h"
#include "run/monitor/core/chart_svg.h"
#include "run/monitor/core/chart_text.h"

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

}  // namespace
}  // namespace disttf::roles
