// A child of a launcher: this file or another program, with pipes for its output.
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
  // "NAME=value", which replaces this process's variable NAME.
  std::vector<std::string> variables = {};
  int listen_fd = -1;  // borrowed; -1: none
  bool progress = false;
  std::vector<int> cpus = {};                    // the CPUs that it may use; empty: all
  std::optional<std::uint64_t> memory_mib = {};  // RLIMIT_DATA
};

// The numbers of the CPUs that this process may run on.
[[nodiscard]] std::vector<int> usable_cpus();

// Starts the child: own process group, empty standard input, no blocked or ignored signals, no
// TF_CONFIG except one of `variables`; the kernel kills it when this process dies. A program that
// cannot be run exits with 126. Throws std::system_error.
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

// The prefix of each line of a child: "[worker:1]".
[[nodiscard]] std::string log_prefix(const net::TaskId& task);

}  // namespace disttf::roles
