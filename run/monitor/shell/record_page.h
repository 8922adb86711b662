// `disttf show RUN... --page`: recorded runs as a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "run/monitor/shell/page_server.h"

namespace disttf::roles {

// The most runs of a page: their curves must be distinguishable, and all are in memory.
inline constexpr std::size_t kMostPageRuns = 16;

// Prints the address of the page, and serves it until SIGINT or SIGTERM; returns exit_code_for()
// that. Reads growing files once a second. The page offers no changes. Throws as RecordedRun and
// PageServer do.
int run_record_page(const std::vector<std::string>& runs, const PageOptions& options);

}  // namespace disttf::roles
