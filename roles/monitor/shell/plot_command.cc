#include "roles/monitor/shell/plot_command.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "net/wire/text.h"
#include "roles/monitor/core/chart_svg.h"
#include "roles/monitor/core/record_line.h"
#include "roles/monitor/core/run_view.h"
#include "roles/monitor/core/show_text.h"
#include "roles/monitor/core/view_fields.h"
#include "roles/monitor/shell/record_files.h"
#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using Json = nlohmann::ordered_json;

// What a run that goes on from a checkpoint adds to its --metrics_file has a clock that begins at
// 0 again. Here it goes on.
class MetricsClock {
 public:
  void set_time(Json& record) {
    const double seconds = number_of(record, "time").value_or(0);
    begun_ += seconds < last_ ? last_ : 0;
    last_ = seconds;
    record["time"] = begun_ + seconds;
  }

 private:
  double last_ = 0;
  double begun_ = 0;  // the newest process, after the first one
};

// Throws Failure where there are no records.
Json view_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Failure(kError, net::quoted(path) + ": there is no such file or directory");
  }
  RunView view;
  MetricsClock clock;
  const RecordReading reading =
      read_records(path, BadLines::kRefuse, [&view, &clock](const Json& record) {
        Json known = record;
        if (text_of_field(record, "source") == kMetricsFile) {
          clock.set_time(known);
        }
        view.take(known.dump(-1, ' ', false, Json::error_handler_t::replace));
      });
  if (reading.records == 0) {
    throw Failure(kError, net::quoted(path) +
                              " holds no records of a run; a --train_dir, a file of its records, "
                              "or one of --metrics_file does");
  }
  if (reading.long_lines != 0) {
    log_warning(net::quoted(path) + ": " + std::to_string(reading.long_lines) +
                " lines are longer than a record may be, and were left out");
  }
  if (reading.old_files != 0) {
    log_warning(net::quoted(path) + ": of its files of records the oldest " +
                std::to_string(reading.old_files) + " were left out");
  }
  return Json::parse(view.json(), nullptr, /*allow_exceptions=*/false);
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "nothing that can be drawn" : text;
}

// Throws Failure where one that is asked for is in none of them.
void check_series(const std::vector<PlottedRun>& runs, const PlotSettings& settings) {
  const std::vector<std::string> all = series_of(runs);
  if (all.empty()) {
    throw Failure(kError, "there is no step and no evaluation yet that could be drawn");
  }
  for (const std::string& each : settings.series) {
    if (std::ranges::find(all, each) == all.end()) {
      throw Failure(kError, "--series: there is no " + each + "; there is " + joined(all));
    }
  }
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  if (!(file << text).flush()) {
    throw std::system_error(errno, std::generic_category(),
                            "--output: cannot write " + net::quoted(path));
  }
}

}  // namespace

int run_plot(const PlotOptions& options) {
  std::vector<Json> views;
  for (const std::string& run : options.runs) {
    views.push_back(view_of(run));
  }
  std::vector<PlottedRun> runs;
  for (std::size_t each = 0; each < views.size(); ++each) {
    runs.push_back({.name = options.runs[each], .view = &views[each]});
  }
  check_series(runs, options.settings);
  if (options.json) {
    write_output(plot_json(runs, options.settings));
  } else if (!options.output.empty()) {
    write_file(options.output, svg_of(chart_of(runs, options.settings)));
  } else {
    const TerminalState terminal = terminal_state(STDOUT_FILENO, options.variables);
    write_output(text_of(chart_of(runs, options.settings), terminal.style));
  }
  return kDone;
}

int run_show(const ShowOptions& options) {
  const Json view = view_of(options.directory);
  write_output(options.json ? view.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"
                            : show_text(view, options.directory,
                                        terminal_state(STDOUT_FILENO, options.variables).style));
  return kDone;
}

}  // namespace disttf::roles
