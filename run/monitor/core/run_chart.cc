#include "run/monitor/core/run_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "data/json/json_text.h"
#include "net/wire/text.h"
#include "run/monitor/core/chart.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;
using data::member_of;

struct KnownSeries {
  std::string_view name;
  std::string_view quantity;  // series of one quantity share a panel
};
constexpr std::array<KnownSeries, 9> kSeries = {{{"loss", "loss"},
                                                 {"validation_loss", "loss"},
                                                 {"test_loss", "loss"},
                                                 {"validation_accuracy", "accuracy"},
                                                 {"test_accuracy", "accuracy"},
                                                 {"validation_absolute_error", "absolute error"},
                                                 {"test_absolute_error", "absolute error"},
                                                 {"learning_rate", "learning rate"},
                                                 {"images_per_second", "images per second"}}};
constexpr auto kSeriesNames = [] {
  std::array<std::string_view, kSeries.size()> names;
  for (std::size_t each = 0; each < names.size(); ++each) {
    names[each] = kSeries[each].name;
  }
  return names;
}();

struct Sample {
  double step = 0;
  double time = 0;
  double value = 0;
};

std::vector<Sample> samples_of(const OrderedJson& view, std::string_view name) {
  const OrderedJson& series = member_of(member_of(view, "series"), name);
  const OrderedJson& steps = member_of(series, "steps");
  const OrderedJson& times = member_of(series, "times");
  const OrderedJson& values = member_of(series, "values");
  std::vector<Sample> samples;
  // Lists of a view from elsewhere may differ in length.
  for (std::size_t each = 0; each < std::min(steps.size(), values.size()); ++each) {
    const auto step = number_at(steps, each);
    const auto value = number_at(values, each);
    // A diverged run has null for a loss that is not finite.
    if (step && value) {
      samples.push_back({*step, number_at(times, each).value_or(0), *value});
    }
  }
  return samples;
}

void smooth(std::vector<Sample>& samples, std::size_t count) {
  std::deque<double> last;
  for (Sample& sample : samples) {
    last.push_back(sample.value);
    if (last.size() > count) {
      last.pop_front();
    }
    double sum = 0;
    // Summed anew each time: a running sum would keep the rounding of a large value for ever.
    for (const double value : last) {
      sum += value;
    }
    sample.value = sum / static_cast<double>(last.size());
  }
}

std::vector<Sample> samples_of(const PlottedRun& run, std::string_view name,
                               const PlotSettings& settings) {
  std::vector<Sample> samples = samples_of(*run.view, name);
  if (settings.smooth > 1) {
    smooth(samples, settings.smooth);
  }
  return samples;
}

std::vector<std::string> wanted_series(std::span<const PlottedRun> runs,
                                       const PlotSettings& settings) {
  if (!settings.series.empty()) {
    return settings.series;
  }
  const std::vector<std::string> all = series_of(runs);
  const auto has = [&all](const char* name) { return std::ranges::find(all, name) != all.end(); };
  std::vector<std::string> wanted;
  if (has("loss")) {
    wanted.emplace_back("loss");
  }
  // Several runs with two losses each would be unreadable.
  if (has("validation_loss") && (runs.size() == 1 || wanted.empty())) {
    wanted.emplace_back("validation_loss");
  }
  for (const char* const name : {"test_accuracy", "test_absolute_error"}) {
    if (has(name)) {
      wanted.emplace_back(name);
    }
  }
  // A user's program has no other set.
  if (has("validation_accuracy") && !has("test_accuracy")) {
    wanted.emplace_back("validation_accuracy");
  }
  return wanted.empty() ? all : wanted;
}

// The time of the run's first record, from which times are counted.
double beginning_of(const PlottedRun& run, const std::vector<Sample>& samples) {
  const auto began = number_of(member_of(*run.view, "run"), "began");
  return began.value_or(samples.empty() ? 0 : samples.front().time);
}

bool is_known(std::string_view name) {
  return std::ranges::find(kSeriesNames, name) != kSeriesNames.end();
}

std::string quantity_of(std::string_view name, std::span<const PlottedRun> runs) {
  const auto* const known = std::ranges::find(kSeries, name, &KnownSeries::name);
  if (known == kSeries.end()) {
    // A number of a user's program, told with a step or an evaluation.
    for (const std::string_view prefix : {"validation_", "test_"}) {
      name.remove_prefix(name.starts_with(prefix) ? prefix.size() : 0);
    }
    return net::one_line(name);
  }
  const bool are_rows = std::ranges::all_of(runs, [](const PlottedRun& run) {
    return text_of_field(member_of(*run.view, "run"), "model") == "program";
  });
  return known->name == "images_per_second" && are_rows ? "rows per second"
                                                        : std::string(known->quantity);
}

struct TimeUnit {
  double seconds = 1;
  const char* name = "seconds";
};

// The unit that keeps a plot's times short.
TimeUnit time_unit(double longest) {
  return longest > 3 * 3600.0 ? TimeUnit{3600, "hours"}
         : longest > 3 * 60.0 ? TimeUnit{60, "minutes"}
                              : TimeUnit{};
}

void divide_times(Chart& chart) {
  double longest = 0;
  for (const Panel& panel : chart.panels) {
    for (const Curve& curve : panel.curves) {
      // x never falls, so the last point is the latest.
      longest = std::max(longest, curve.points.empty() ? 0 : curve.points.back().x);
    }
  }
  const TimeUnit unit = time_unit(longest);
  chart.x_name = unit.name;
  for (Panel& panel : chart.panels) {
    for (Curve& curve : panel.curves) {
      for (Point& point : curve.points) {
        point.x /= unit.seconds;
      }
    }
  }
}

// "MNIST, mlp" for one run, if its records have it; else the names of the runs.
std::string title_of(std::span<const PlottedRun> runs) {
  std::string title = net::joined(runs, ", ", &PlottedRun::name);
  if (runs.size() == 1) {
    const OrderedJson& run = member_of(*runs.front().view, "run");
    const std::string dataset = text_of_field(run, "dataset");
    const std::string model = text_of_field(run, "model");
    title += dataset.empty() ? "" : ": " + dataset + (model.empty() ? "" : ", " + model);
  }
  return net::one_line(title);
}

}  // namespace

std::span<const std::string_view> series_names() noexcept { return kSeriesNames; }

std::vector<std::string> series_of(std::span<const PlottedRun> runs) {
  std::vector<std::string> names;
  for (const std::string_view name : kSeriesNames) {
    if (std::ranges::any_of(
            runs, [name](const PlottedRun& run) { return !samples_of(*run.view, name).empty(); })) {
      names.emplace_back(name);
    }
  }
  std::set<std::string> numbers;
  for (const PlottedRun& run : runs) {
    for (const auto& [name, value] : newest_numbers(*run.view)) {
      numbers.insert(name);
    }
  }
  names.insert(names.end(), numbers.begin(), numbers.end());
  return names;
}

std::vector<std::pair<std::string, double>> newest_numbers(const OrderedJson& view) {
  std::vector<std::pair<std::string, double>> numbers;
  const OrderedJson& series = member_of(view, "series");
  if (series.is_object()) {
    for (const auto& [name, unused] : series.items()) {
      const std::vector<Sample> samples =
          is_known(name) ? std::vector<Sample>() : samples_of(view, name);
      if (!samples.empty()) {
        numbers.emplace_back(name, samples.back().value);
      }
    }
  }
  return numbers;
}

Chart chart_of(std::span<const PlottedRun> runs, const PlotSettings& settings) {
  Chart chart{.title = title_of(runs), .x_name = "step", .panels = {}};
  const std::vector<std::string> wanted = wanted_series(runs, settings);
  for (const std::string& name : wanted) {
    const std::string quantity = quantity_of(name, runs);
    auto panel = std::ranges::find(chart.panels, quantity, &Panel::name);
    if (panel == chart.panels.end()) {
      panel = chart.panels.insert(panel,
                                  Panel{.name = quantity, .is_log = settings.is_log, .curves = {}});
    }
    for (const PlottedRun& run : runs) {
      const std::vector<Sample> samples = samples_of(run, name, settings);
      if (samples.empty()) {
        continue;
      }
      const double beginning = beginning_of(run, samples);
      Curve& curve = panel->curves.emplace_back();
      curve.name = net::one_line(runs.size() == 1 ? name : name + " " + run.name);
      for (const Sample& each : samples) {
        const double x = settings.by_time ? std::max(each.time - beginning, 0.0) : each.step;
        // A clock may be moved backwards during a run; a curve must not go backwards.
        const double least = curve.points.empty() ? x : curve.points.back().x;
        curve.points.push_back({std::max(x, least), each.value});
      }
    }
  }
  if (settings.by_time) {
    divide_times(chart);
  }
  return chart;
}

std::string plot_json(std::span<const PlottedRun> runs, const PlotSettings& settings) {
  const std::vector<std::string> wanted = wanted_series(runs, settings);
  OrderedJson json = {{"runs", OrderedJson::array()}};
  for (const PlottedRun& run : runs) {
    OrderedJson series = OrderedJson::object();
    for (const std::string& name : wanted) {
      const std::vector<Sample> samples = samples_of(run, name, settings);
      if (samples.empty()) {
        continue;
      }
      OrderedJson& out = series[name];
      for (const Sample& sample : samples) {
        out["steps"].push_back(static_cast<std::uint64_t>(sample.step));
        out["times"].push_back(sample.time);
        out["values"].push_back(sample.value);
      }
    }
    json["runs"].push_back({{"run", run.name}, {"series", std::move(series)}});
  }
  return data::json_text(json) + "\n";
}

std::optional<double> number_of(const OrderedJson& json) {
  if (!json.is_number()) {
    return std::nullopt;
  }
  const double value = json.get<double>();
  // Larger numbers would overflow in the arithmetic of axes.
  return std::abs(value) <= kMostShown ? std::optional(value) : std::nullopt;
}

std::optional<double> number_of(const OrderedJson& json, std::string_view name) {
  return number_of(data::member_of(json, name));
}

std::optional<double> number_at(const OrderedJson& list, std::size_t at) {
  return list.is_array() && at < list.size() ? number_of(list[at]) : std::nullopt;
}

std::optional<std::uint64_t> count_of(const OrderedJson& json, std::string_view name) {
  const OrderedJson& field = data::member_of(json, name);
  // Numbers that this program has put in may be signed; parsed ones are unsigned.
  const bool is_count =
      field.is_number_unsigned() || (field.is_number_integer() && field.get<std::int64_t>() >= 0);
  return is_count ? std::optional(field.get<std::uint64_t>()) : std::nullopt;
}

std::string text_of_field(const OrderedJson& json, std::string_view name) {
  return net::one_line(data::member_text(json, name));
}

}  // namespace disttf::roles
