#include "run/monitor/shell/plot_command.h"

#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <csignal>
#include <deque>
#include <optional>
#include <system_error>
#include <utility>

#include "data/json/json_text.h"
#include "data/output_file.h"
#include "net/wire/text.h"
#include "run/monitor/core/chart.h"
#include "run/monitor/core/show_text.h"
#include "run/monitor/shell/record_feed.h"
#include "run/monitor/shell/run_page.h"
#include "run/monitor/shell/terminal.h"
#include "run/outcome.h"
#include "run/process/stop_signal.h"

namespace disttf::roles {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson view_of(const std::string& path) {
  return data::parse_ordered_json(RecordedRun(path).feed().view());
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
                    "--series: there is no " + each + "; there is " + net::joined(all, ", "));
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

namespace {

constexpr std::chrono::seconds kReadOn{1};

struct ShownRun {
  explicit ShownRun(const std::string& path) : run(path), page(run.feed(), {}) {}
  RecordedRun run;
  RunPage page;  // subscribes here: earlier records are in the view
};

class RecordPage {
 public:
  RecordPage(const std::vector<std::string>& runs, const PageOptions& options) {
    std::vector<RunPage::Shown> all;
    all.reserve(runs.size());
    for (const std::string& run : runs) {
      all.push_back({.name = run, .page = &shown_.emplace_back(run).page});
    }
    shown_.front().page.show_runs(std::move(all));
    server_.emplace(context_, options, shown_.front().page);
  }

  int run() {
    write_output("the run's page is " + server_->url() + "\n");
    signals_.async_wait([this](std::error_code error, int signal) {
      if (!error) {
        signal_ = signal;
        timer_.cancel();
        server_->stop();
      }
    });
    read_on();
    // Returns once a signal has stopped the timer and the server.
    context_.run();
    return exit_code_for(signal_);
  }

 private:
  void read_on() {
    timer_.expires_after(kReadOn);
    timer_.async_wait([this](std::error_code error) {
      // A timer that has already expired ignores cancel().
      if (error || signal_ != 0) {
        return;
      }
      for (ShownRun& each : shown_) {
        each.run.read_on();
      }
      read_on();
    });
  }

  asio::io_context context_{1};
  asio::signal_set signals_{context_, SIGINT, SIGTERM};
  asio::steady_timer timer_{context_};
  std::deque<ShownRun> shown_;  // with stable addresses: each refers to itself
  std::optional<PageServer> server_;
  int signal_ = 0;
};

}  // namespace

int run_record_page(const std::vector<std::string>& runs, const PageOptions& options) {
  return RecordPage(runs, options).run();
}

}  // namespace disttf::roles
