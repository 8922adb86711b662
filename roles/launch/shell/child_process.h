// One child of a launcher: this very file or another program, with pipes for what it prints.
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
  data::FileDescriptor progress;  // only when asked for
};

// What the child is given: `listen_fd` and, if `progress`, the write end of a pipe stay open in it
// and are named to it as --listen_fd=N and --progress_fd=N.
struct ChildOptions {
  std::string program = {};                 // the file that is run; empty: this very one
  std::string name = "disttf";              // what it is told as its own name
  std::vector<std::string> arguments = {};  // after the name
  // "NAME=value", in place of what this process has under that name.
  std::vector<std::string> variables = {};
  int listen_fd = -1;  // borrowed; -1: none
  bool progress = false;
  std::vector<int> cpus = {};                    // the only ones it may run on; empty: all
  std::optional<std::uint64_t> memory_mib = {};  // RLIMIT_DATA
};

// The numbers of the CPUs that this process may run on.
[[nodiscard]] std::vector<int> usable_cpus();

// Starts it: own process group, standard input empty, no blocked or ignored signals, no TF_CONFIG
// but one of its `variables`, killed by the kernel when this thread's process dies. A program that
// cannot be run ends with 126. Throws std::system_error.
[[nodiscard]] ChildProcess start_child(const ChildOptions& options);
// The same, for who cannot try again later: where no process can be made, waits for up to 2 s.
[[nodiscard]] ChildProcess start_child_patiently(const ChildOptions& options);

// Reaps children that have ended and that this process did not start: orphans of other processes,
// which the kernel gives to process 1 of a container and to a child subreaper. `is_own`: whether
// the process is one that the caller waits for itself; where the first child that has ended is one,
// nothing more is reaped in this call, and its SIGCHLD leads to the next.
void reap_others(const std::function<bool(pid_t)>& is_own);

// The file that a shell would run for `name`: itself where it has a slash, else the first in the
// folders of `search_path` (PATH). nullopt: there is none that may be run.
[[nodiscard]] std::optional<std::string> find_program(const std::string& name,
                                                      std::string_view search_path);

// What stands before each line of a child: "[worker:1]".
[[nodiscard]] std::string log_prefix(const net::TaskId& task);

}  // namespace disttf::roles
