#include "run/monitor/shell/plot_command.h"

#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "data/json/json_text.h"
#include "data/output_file.h"
#include "net/wire/text.h"
#include "run/monitor/core/chart_svg.h"
#include "run/monitor/core/show_text.h"
#include "run/monitor/shell/record_page.h"
#include "run/monitor/shell/recorded_run.h"
#include "run/outcome.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson view_of(const std::string& path) {
  return data::parse_ordered_json(RecordedRun(path).feed().view());
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text.empty() ? "no series" : text;
}

// Throws Failure if no run has one of the requested series.
void check_series(const std::vector<PlottedRun>& runs, const PlotSettings& settings) {
  const std::vector<std::string> all = series_of(runs);
  if (all.empty()) {
    throw Failure(kError, "the run has no step and no evaluation yet");
  }
  for (const std::string& each : settings.series) {
    if (std::ranges::find(all, each) == all.end()) {
      const auto known = series_names();
      throw Failure(std::ranges::find(known, each) == known.end() ? kUsage : kError,
                    "--series: there is no " + each + "; there is " + joined(all));
    }
  }
}

void write_file(const std::string& path, const std::string& text) {
  try {
    data::write_output_file(path, text);
  } catch (const std::system_error& error) {
    throw Failure(kError, "--output: " + std::string(error.what()));
  }
}

}  // namespace

int run_plot(const PlotOptions& options) {
  std::vector<OrderedJson> views;
  for (const std::string& run : options.runs) {
    views.push_back(view_of(run));
  }
  std::vector<PlottedRun> runs;
  // In a second loop: `runs` has pointers into `views`, which must not grow any more.
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
  if (options.page) {
    return run_record_page(options.runs, *options.page);
  }
  const OrderedJson view = view_of(options.runs.front());
  const TerminalState terminal = terminal_state(STDOUT_FILENO, options.variables);
  write_output(options.json ? data::json_text(view) + "\n"
                            : show_text(view, options.runs.front(), terminal.style,
                                        terminal.is_terminal ? terminal.style.columns : 0));
  return kDone;
}

}  // namespace disttf::roles
