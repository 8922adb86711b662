// A running launch, shown again and again: `status --watch` and `top`.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "roles/monitor/shell/terminal.h"

namespace disttf::roles {

struct WatchOptions {
  std::string socket;
  bool is_top = false;  // else status
  bool once = false;
  bool json = false;  // an object a line each time
  std::chrono::milliseconds every{2000};
  TerminalVariables variables;
};

// On a terminal it is redrawn on a screen of its own; elsewhere rows are added as they change, and
// of `top` all of them. Ends when the run does: kDone, after a line that says so; of `top`, where
// standard input and output are a terminal, with q: kDone; by a signal with exit_code_for() it.
// Whatever ends it, the terminal is then as it was. Throws Failure where nobody is there to be
// watched (kError), or nobody answers any more (kLostPeers).
int run_watch(const WatchOptions& options);

// What `status` prints of an answer to GET /v1/status, with what else the launch knows of its
// tasks. Throws Failure.
[[nodiscard]] std::string status_text(const std::string& socket, std::string_view status,
                                      const TerminalVariables& variables);

}  // namespace disttf::roles
