// Shows a running launch repeatedly: `status --watch` and `top`.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "run/monitor/shell/terminal.h"

namespace disttf::roles {

struct StatusWatchOptions {
  std::string socket;
  bool is_top = false;  // else status
  bool once = false;
  bool json = false;  // one object per line and update
  std::chrono::milliseconds every{2000};
  TerminalVariables variables;
};

// On a terminal it redraws a screen of its own; elsewhere it prints rows as they change, and all
// rows of `top`. Ends with the run: kDone, after a line about the end; `top` on a terminal also
// with q: kDone; on a signal with its exit_code_for(). Always restores the terminal. Throws Failure
// if no launch is there (kError), or it does not answer any more (kLostPeers).
int run_status_watch(const StatusWatchOptions& options);

// The output of `status` for an answer to GET /v1/status, with what else the launch reports about
// its tasks. Throws Failure.
[[nodiscard]] std::string status_text(const std::string& socket, std::string_view status,
                                      const TerminalVariables& variables);

}  // namespace disttf::roles
