#include "run/monitor/core/metric_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "net/wire/text.h"

namespace disttf::roles {
namespace {

std::string_view type_word(MetricType type, ExpositionFormat format) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kHistogram:
      return "histogram";
    case MetricType::kInfo:
      // The text format has no type for it.
      return format == ExpositionFormat::kOpenMetrics ? "info" : "gauge";
    case MetricType::kGauge:
      break;
  }
  return "gauge";
}

std::string_view suffix_of(MetricType type) {
  return type == MetricType::kCounter ? "_total" : type == MetricType::kInfo ? "_info" : "";
}

// The shortest text that reads back as the same number.
std::string number_text(double number) {
  if (std::isnan(number)) {
    return "NaN";
  }
  return std::isinf(number) ? (number > 0 ? "+Inf" : "-Inf") : fmt::format("{}", number);
}

// A bound of a bucket: OpenMetrics requires 1 to be written 1.0, and both formats must give the
// same series.
std::string bound_text(double bound) {
  std::string text = number_text(bound);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// `quotes`: escape quotes, for label values and, in OpenMetrics, for help texts.
std::string escaped(std::string_view text, bool quotes) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) {
      out += '\\';
    }
    out += c;
  }
  return out;
}

class Writer {
 public:
  Writer(std::string_view task, ExpositionFormat format)
      : format_(format), task_("task=\"" + escaped(task, true) + "\"") {}

  void write(const MetricFamily& family) {
    const MetricRow& row = row_of(family.metric);
    const std::string sample_name = std::string(row.name) + std::string(suffix_of(row.type));
    // In the text format a counter's family has the name of its samples.
    const bool is_open = format_ == ExpositionFormat::kOpenMetrics;
    const std::string_view name = is_open ? row.name : std::string_view(sample_name);
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, escaped(row.help, is_open), name,
                         type_word(row.type, format_));
    if (is_open && !row.unit.empty()) {
      text_ += fmt::format("# UNIT {} {}\n", name, row.unit);
    }
    for (const MetricSample& sample : family.samples) {
      const std::string labels = labels_of(sample);
      if (const auto* const histogram = std::get_if<HistogramValue>(&sample.value)) {
        write_histogram(sample_name, labels, *histogram);
      } else if (const auto* const count = std::get_if<std::uint64_t>(&sample.value)) {
        line(sample_name, labels, std::to_string(*count));
      } else {
        line(sample_name, labels, number_text(std::get<double>(sample.value)));
      }
    }
  }

  std::string take() {
    if (format_ == ExpositionFormat::kOpenMetrics) {
      // OpenMetrics: a reader takes a text without this end for truncated.
      text_ += "# EOF\n";
    }
    return std::move(text_);
  }

 private:
  [[nodiscard]] std::string labels_of(const MetricSample& sample) const {
    std::string labels = task_;
    for (const MetricLabel& label : sample.labels) {
      labels += fmt::format(",{}=\"{}\"", label.name, escaped(label.value, true));
    }
    return labels;
  }

  void line(std::string_view name, std::string_view labels, std::string_view value) {
    text_ += fmt::format("{}{{{}}} {}\n", name, labels, value);
  }

  void write_histogram(const std::string& name, const std::string& labels,
                       const HistogramValue& histogram) {
    std::uint64_t total = 0;
    for (std::size_t each = 0; each < histogram.counts.size(); ++each) {
      // Buckets are cumulative in both formats.
      total += histogram.counts[each];
      const std::string bound =
          each < histogram.bounds.size() ? bound_text(histogram.bounds[each]) : "+Inf";
      line(name + "_bucket", fmt::format("{},le=\"{}\"", labels, bound), std::to_string(total));
    }
    line(name + "_sum", labels, number_text(histogram.sum));
    // From the buckets, and not from a counter of its own: both formats require that they agree.
    line(name + "_count", labels, std::to_string(total));
  }

  const ExpositionFormat format_;
  const std::string task_;
  std::string text_;
};

// Takes the text before the separator off `text`, and the separator.
std::string_view take_part(std::string_view& text, char separator) {
  const std::size_t at = text.find(separator);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return net::trim(part);
}

// An entry of an Accept header, in lower case: "text/plain;version=0.0.4;q=0.5".
struct Accepted {
  std::string_view type;
  std::string_view version;
  double quality = 1;
};

Accepted read_entry(std::string_view entry) {
  Accepted accepted{.type = take_part(entry, ';'), .version = {}};
  while (!entry.empty()) {
    std::string_view parameter = take_part(entry, ';');
    const std::string_view name = take_part(parameter, '=');
    const std::string_view value = net::trim(parameter);
    if (name == "version") {
      accepted.version = value;
    } else if (name == "q") {
      const auto [end, error] =
          std::from_chars(value.data(), value.data() + value.size(), accepted.quality);
      // A malformed quality excludes the entry instead of preferring it.
      if (error != std::errc() || end != value.data() + value.size()) {
        accepted.quality = 0;
      }
    }
  }
  return accepted;
}

}  // namespace

ExpositionFormat format_for(std::string_view accept) {
  // Media types and parameters are case-insensitive.
  std::string lower(accept);
  std::ranges::transform(lower, lower.begin(), net::lower);
  double of_open = 0;
  double of_text = 0;
  for (std::string_view rest = lower; !rest.empty();) {
    const Accepted entry = read_entry(take_part(rest, ','));
    if (entry.type == "application/openmetrics-text" &&
        // Another version may have another syntax.
        (entry.version.empty() || entry.version == "1.0.0")) {
      of_open = std::max(of_open, entry.quality);
    } else if (entry.type == "text/plain") {
      of_text = std::max(of_text, entry.quality);
    }
  }
  // OpenMetrics only if the client prefers it, or does not care.
  return of_open > 0 && of_open >= of_text ? ExpositionFormat::kOpenMetrics
                                           : ExpositionFormat::kText;
}

std::string_view content_type_of(ExpositionFormat format) noexcept {
  return format == ExpositionFormat::kOpenMetrics
             ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
             : "text/plain; version=0.0.4; charset=utf-8";
}

std::string exposition(std::span<const MetricFamily> families, std::string_view task,
                       ExpositionFormat format) {
  Writer writer(task, format);
  for (const MetricFamily& family : families) {
    if (!family.samples.empty()) {
      writer.write(family);
    }
  }
  return writer.take();
}

}  // namespace disttf::roles
