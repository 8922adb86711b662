// `disttf status`, `top`, `trace`, `page`, `endpoints`, `logs`, `pods` and `update`: what a running
// launch of this user is asked and told from another process.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "roles/launch/shell/launcher.h"
#include "roles/monitor/shell/terminal.h"

namespace disttf::roles {

enum class ManageVerb : std::uint8_t {
  kStatus,
  kTop,
  kPage,
  kEndpoints,
  kLogs,
  kPodsList,
  kPodsRestart,
  kPodsReplace,
  kUpdate,
  kTrace
};

struct ManageOptions {
  ManageVerb verb = ManageVerb::kStatus;
  std::string task = {};  // "worker:1" or "worker-1", of the verbs that take one
  bool follow = false;    // of logs
  // Of top, and of status that is asked again and again: how often. Empty: the usual, or once.
  std::optional<std::chrono::milliseconds> every = {};
  bool once = false;  // of top
  std::uint32_t trace_steps = 50;
  std::string trace_output = {};  // empty: where the chief puts it
  TerminalVariables variables = {};
  LaunchUpdate update = {};
  bool json = false;           // the answer as it came; of logs, an object a line
  std::string socket = {};     // of the launch; empty: the only one in `directory`
  std::string directory = {};  // where launches put theirs
};

// Prints the answer on standard output. Returns kDone; of what is watched exit_code_for() a signal
// that ended that. Throws Failure with one sentence: kError
// where no launch runs, several do, or the launch refuses now what it was asked; kUsage where it
// does not know the task or the value; kLostPeers where it is there and does not answer.
int run_manage(const ManageOptions& options);

}  // namespace disttf::roles
