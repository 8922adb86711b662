// A child of a launcher or a supervisor: this file or another program.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/file.h"
#include "net/wire/cluster.h"

namespace disttf::roles {

struct ChildProcess {
  pid_t pid = -1;
  data::FileDescriptor standard_output;  // read ends
  data::FileDescriptor standard_error;
  data::FileDescriptor progress;  // only if requested
};

// What the child inherits: `listen_fd` and, with `progress`, the write end of a pipe stay open.
// Their numbers are passed as --listen_fd=N and --progress_fd=N.
struct ChildOptions {
  std::string program = {};                 // the file to run; empty: this one
  std::string name = "disttf";              // argv[0]
  std::vector<std::string> arguments = {};  // after the name
  std::vector<std::string> command = {};    // last, after "--"; empty: neither
  // "NAME=value", which replaces this process's variable NAME.
  std::vector<std::string> variables = {};
  std::vector<std::string> removed = {};  // names of variables that the child does not get
  int listen_fd = -1;                     // borrowed; -1: none
  // Further descriptors that stay open, with the same numbers; borrowed. Negative ones are none.
  std::vector<int> inherited = {};
  bool has_pipes = true;  // for its output; false: it has this process's output
  // Without pipes: its standard output goes to this process's standard error.
  bool prints_to_error = false;
  bool leads_group = true;  // false: it stays in this process's group
  bool progress = false;
  std::vector<int> cpus = {};                    // the CPUs that it may use; empty: all
  std::optional<std::uint64_t> memory_mib = {};  // RLIMIT_DATA
};

// The numbers of the CPUs that this process may run on.
[[nodiscard]] std::vector<int> usable_cpus();

// Starts the child: empty standard input, no blocked or ignored signals, no TF_CONFIG except one of
// `variables`; the kernel kills it when this process dies. A program that cannot be run exits with
// 126. Throws std::system_error.
[[nodiscard]] ChildProcess start_child(const ChildOptions& options);
// The same for callers that cannot retry later: retries for up to 2 s.
[[nodiscard]] ChildProcess start_child_with_retries(const ChildOptions& options);

// Reaps ended children that this process did not start: orphans, which the kernel gives to process
// 1 of a container and to a child subreaper. `is_own`: whether the caller reaps the process itself.
// If the first ended child is its own, this call reaps no more; that child's SIGCHLD leads to the
// next.
void reap_others(const std::function<bool(pid_t)>& is_own);

// The file that a shell would run for `name`: itself if it contains a slash, else the first in the
// folders of `search_path` (PATH). nullopt: none can be run.
[[nodiscard]] std::optional<std::string> find_program(const std::string& name,
                                                      std::string_view search_path);

// The children of a process, the oldest first.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);

// Sends a signal to the group that a process was started to lead, and to the process itself if it
// has moved to another group. REQUIRES: it is not reaped yet.
void signal_group_of(pid_t leader, int signal);

// Sends SIGKILL, SIGSTOP or SIGCONT to a child and to what it has started: its children, with the
// groups that they lead. For a supervisor, which cannot pass on a signal that it does not receive.
void signal_with_children(pid_t child, int signal);

// The prefix of each line of a child: "[worker:1]".
[[nodiscard]] std::string log_prefix(const net::TaskId& task);

}  // namespace disttf::roles
