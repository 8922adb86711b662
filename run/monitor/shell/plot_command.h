// `disttf plot` and `disttf show`: recorded runs as curves and as text.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "run/monitor/core/run_chart.h"
#include "run/monitor/shell/page_server.h"
#include "run/monitor/shell/terminal.h"

namespace disttf::roles {

struct PlotOptions {
  std::vector<std::string> runs;  // each a --train_dir, a file of records, or a --metrics_file
  PlotSettings settings;
  std::string output;  // a file; empty: the terminal
  bool json = false;
  TerminalVariables variables;
};

struct ShowOptions {
  std::vector<std::string> runs;  // one; several only with a page
  std::optional<PageOptions> page = {};
  bool json = false;
  TerminalVariables variables;
};

// Both print, or write the file, and return kDone; with a page they return what run_record_page()
// (serve_record_page) does. Throw std::invalid_argument if a file is malformed, Failure (kError) if
// there are no records, std::system_error if a file cannot be read or written.
int run_plot(const PlotOptions& options);
int run_show(const ShowOptions& options);

// `disttf show RUN... --page`: recorded runs as a page.

// The most runs of a page: their curves must be distinguishable, and all are in memory.
inline constexpr std::size_t kMostPageRuns = 16;

// Prints the address of the page, and serves it until SIGINT or SIGTERM; returns exit_code_for()
// that. Reads growing files once a second. The page offers no changes. Throws as RecordedRun and
// PageServer do.
int run_record_page(const std::vector<std::string>& runs, const PageOptions& options);

}  // namespace disttf::roles
