// `disttf status`, `top`, `trace`, `page`, `endpoints`, `logs`, `pods` and `update`: requests of
// another process to a running launch of this user.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "roles/launch/shell/launcher.h"
#include "run/monitor/shell/terminal.h"

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
  std::string task = {};  // "worker:1" or "worker-1", for verbs that take one
  bool follow = false;    // logs
  // The interval of top, and of a repeated status. Empty: the default, or once.
  std::optional<std::chrono::milliseconds> every = {};
  bool once = false;  // top
  std::uint32_t trace_steps = 50;
  std::string trace_output = {};  // empty: where the chief writes it
  TerminalVariables variables = {};
  LaunchUpdate update = {};
  bool json = false;           // print the answer unchanged; logs: an object per line
  std::string socket = {};     // of the launch; empty: the only one in `directory`
  std::string directory = {};  // of the launches' sockets
};

// Prints the answer to standard output. Returns kDone, or exit_code_for() a signal that ends a
// repeated display. Throws Failure with one sentence: kError if no launch runs, several do, or the
// launch rejects the request now; kUsage if the task or the value is unknown; kLostPeers if the
// launch does not answer.
int run_manage(const ManageOptions& options);

// The answers of a control address as text, except that to status (status_watch.h).
//
// A pure function.

// `json`: the launch's answer. Throws Failure (kError) if it has another form.
[[nodiscard]] std::string text_of(ManageVerb verb, std::string_view json);

// `disttf trace`: requests a timeline of some steps from a running launch, and fetches the file.
struct TraceOptions {
  std::string socket;  // of the launch
  std::uint32_t steps = 50;
  std::string output = {};  // empty: the file stays where the chief wrote it
  bool json = false;
};

// Waits for the steps, and prints the path of the timeline. Returns kDone. Throws Failure with one
// sentence: kError if there is no timeline, or it cannot be fetched; kLostPeers if the launch has
// gone.
int run_trace(const TraceOptions& options);

}  // namespace disttf::roles
