// `disttf show RUN... --page`: runs that have been written down, as a page.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "roles/monitor/shell/page_server.h"

namespace disttf::roles {

// Of one page: a curve of each is to be told apart, and all are held in memory.
inline constexpr std::size_t kMostPageRuns = 16;

// Prints where the page is, and serves it until SIGINT or SIGTERM: exit_code_for() that. What is
// still being written is read on, once a second. Nothing can be changed from there: nobody would
// hear it. Throws as RecordedRun and PageServer do.
int run_record_page(const std::vector<std::string>& runs, const PageOptions& options);

}  // namespace disttf::roles
