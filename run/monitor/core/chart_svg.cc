#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "net/wire/text.h"
#include "run/monitor/core/chart.h"

namespace disttf::roles {
namespace {

// In pixels of the file's own size, which scales.
constexpr double kWidth = 800;
constexpr double kLeft = 70;              // labels of ticks, and the name of the y axis
constexpr double kRight = 20;             // half of the last tick's label
constexpr double kTitle = 40;             // above the first panel
constexpr double kPanel = 240;            // the curves of a panel
constexpr double kBelow = 44;             // below each panel: labels of ticks, name of the x axis
constexpr double kLegendRow = 20;         // above the curves
constexpr double kLegendCharacter = 7.2;  // approximate width of 12-pixel text
constexpr double kLegendLine = 40;        // a sample of the curve, and space
constexpr std::size_t kXTicks = 8;
constexpr std::size_t kYTicks = 6;

// Okabe and Ito's colours, which nearly everyone can distinguish; brighter variants of the dark
// ones for a dark background. The dashes suffice without colours.
struct Stroke {
  const char* light;
  const char* dark;
  const char* dashes;
};
constexpr std::array<Stroke, 8> kStrokes = {{{"#0072b2", "#56b4e9", ""},
                                             {"#d55e00", "#f0843c", "8 4"},
                                             {"#007a5e", "#2fc59a", "2 3"},
                                             {"#a8518a", "#cc79a7", "10 3 2 3"},
                                             {"#8f6400", "#e69f00", "14 5"},
                                             {"#2f7fb3", "#9ad5f5", "6 2 2 2 2 2"},
                                             {"#6b6b00", "#f0e442", "4 4"},
                                             {"#444444", "#cccccc", "1 4"}}};

std::string xml_text(std::string_view text) {
  std::string out;
  // Names come from records, so they must not add elements to the file. Text stands between tags
  // only, where quotes need no escape.
  for (const char c : net::one_line(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string style_element() {
  std::string light;
  std::string dark;
  for (std::size_t each = 0; each < kStrokes.size(); ++each) {
    light += fmt::format(".c{}{{stroke:{}}}", each, kStrokes.at(each).light);
    dark += fmt::format(".c{}{{stroke:{}}}", each, kStrokes.at(each).dark);
  }
  return "<style>\n"
         "text{font:12px sans-serif;fill:#222}.title{font-size:15px;font-weight:bold}"
         ".page{fill:#fff}.grid{stroke:#ddd}.axis{stroke:#666;fill:none}.curve{fill:none;"
         "stroke-width:1.6;stroke-linejoin:round}\n" +
         light +
         "\n@media (prefers-color-scheme: dark){text{fill:#ddd}.page{fill:#161616}"
         ".grid{stroke:#383838}.axis{stroke:#999}\n" +
         dark + "}\n</style>\n";
}

std::string line_element(const char* name, double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\"/>\n", name, x1,
      y1, x2, y2);
}

std::string text_at(double x, double y, const char* anchor, std::string_view text) {
  return fmt::format("<text x=\"{:.2f}\" y=\"{:.2f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     xml_text(text));
}

// class="curve c1" stroke-dasharray="8 4"
std::string stroke_of(std::size_t curve) {
  // More curves than strokes repeat them.
  const Stroke& stroke = kStrokes.at(curve % kStrokes.size());
  const std::string dashes =
      *stroke.dashes == '\0' ? "" : fmt::format(" stroke-dasharray=\"{}\"", stroke.dashes);
  return fmt::format("class=\"curve c{}\"{}", curve % kStrokes.size(), dashes);
}

// The position of a panel; y grows downwards.
struct PanelLayout {
  double top = 0;  // of the curves
  Axis x;
  Axis y;

  [[nodiscard]] double left_of(double value) const {
    return kLeft + x.place_of(value) * (kWidth - kLeft - kRight);
  }
  [[nodiscard]] double above(double value) const { return top + (1 - y.place_of(value)) * kPanel; }
};

struct Legend {
  std::string text;
  double rows = 0;
};

// The legend of a panel, in as many rows as it needs; `top`: of the first row.
Legend legend_of(const Panel& panel, double top) {
  Legend legend{.text = {}, .rows = 1};
  double x = kLeft;
  for (std::size_t each = 0; each < panel.curves.size(); ++each) {
    const std::string& name = panel.curves[each].name;
    const double width = kLegendLine + kLegendCharacter * static_cast<double>(name.size()) + 16;
    // A name that is longer than a row gets one of its own.
    if (x > kLeft && x + width > kWidth - kRight) {
      x = kLeft;
      ++legend.rows;
    }
    const double y = top + kLegendRow * legend.rows - 6;
    legend.text += fmt::format("<path {} d=\"M{:.2f} {:.2f}h30\"/>\n", stroke_of(each), x, y - 4);
    legend.text += text_at(x + kLegendLine - 4, y, "start", name);
    x += width;
  }
  return legend;
}

std::string axes_of(const Panel& panel, const std::string& x_name, const PanelLayout& layout) {
  const double bottom = layout.top + kPanel;
  const double right = kWidth - kRight;
  std::string text;
  for (const Tick& tick : layout.y.ticks) {
    const double y = layout.above(tick.value);
    text += line_element("grid", kLeft, y, right, y) + text_at(kLeft - 8, y + 4, "end", tick.name);
  }
  for (const Tick& tick : layout.x.ticks) {
    const double x = layout.left_of(tick.value);
    text += line_element("grid", x, layout.top, x, bottom) +
            text_at(x, bottom + 17, "middle", tick.name);
  }
  text += fmt::format("<path class=\"axis\" d=\"M{:.2f} {:.2f}V{:.2f}H{:.2f}\"/>\n", kLeft,
                      layout.top, bottom, right);
  text += text_at((kLeft + right) / 2, bottom + 34, "middle", x_name);
  text += fmt::format(
      "<text transform=\"translate(16 {:.2f}) rotate(-90)\" text-anchor=\"middle\">{}</text>\n",
      layout.top + kPanel / 2, xml_text(panel.name + (panel.is_log ? " (log)" : "")));
  return text;
}

// A polyline; a dot for a single point, which a line would not show.
std::string curve_of(const Panel& panel, std::size_t curve, const PanelLayout& layout) {
  std::string points;
  std::string last;
  std::size_t count = 0;
  for (const Point& point : panel.curves[curve].points) {
    if (is_shown(panel, point)) {
      last = fmt::format("{:.2f},{:.2f}", layout.left_of(point.x), layout.above(point.y));
      points += (count == 0 ? "" : " ") + last;
      ++count;
    }
  }
  if (count == 0) {
    return {};
  }
  const std::string name = xml_text(panel.curves[curve].name);
  if (count == 1) {
    const std::size_t comma = last.find(',');
    return fmt::format("<circle {} cx=\"{}\" cy=\"{}\" r=\"3\"><title>{}</title></circle>\n",
                       stroke_of(curve), last.substr(0, comma), last.substr(comma + 1), name);
  }
  return fmt::format("<polyline {} points=\"{}\"><title>{}</title></polyline>\n", stroke_of(curve),
                     points, name);
}

}  // namespace

std::string svg_of(const Chart& chart) {
  const std::optional<Axis> x = x_axis_of(chart, kXTicks);
  // The body comes first: its height is part of the head.
  std::string body;
  double top = kTitle;
  for (const Panel& panel : chart.panels) {
    const std::optional<Axis> y = y_axis_of(panel, kYTicks);
    // A panel without points would have an axis without numbers.
    if (!x || !y) {
      continue;
    }
    const Legend legend = legend_of(panel, top);
    const PanelLayout layout{.top = top + legend.rows * kLegendRow, .x = *x, .y = *y};
    body += "<g>\n" + legend.text + axes_of(panel, chart.x_name, layout);
    for (std::size_t each = 0; each < panel.curves.size(); ++each) {
      body += curve_of(panel, each, layout);
    }
    body += "</g>\n";
    top = layout.top + kPanel + kBelow;
  }
  const std::string title = xml_text(chart.title);
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" +
         fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"{0:.0f}\" "
             "height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\">\n"
             "<title>{2}</title>\n",
             kWidth, top, title) +
         style_element() +
         fmt::format(
             "<rect class=\"page\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n"
             "<text class=\"title\" x=\"{:.2f}\" y=\"24\">{}</text>\n",
             kWidth, top, kLeft, title) +
         body + "</svg>\n";
}

}  // namespace disttf::roles
