// `disttf plot` and `disttf show`: recorded runs as curves and as text.
#pragma once

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
// (record_page.h) does. Throw std::invalid_argument if a file is malformed, Failure (kError) if
// there are no records, std::system_error if a file cannot be read or written.
int run_plot(const PlotOptions& options);
int run_show(const ShowOptions& options);

}  // namespace disttf::roles
