// One child of the launcher: started from this very file, with pipes for what it prints.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "data/file.h"

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
  std::vector<std::string> arguments;  // after the program's name
  int listen_fd = -1;                  // borrowed
  bool progress = false;
};

// Starts it: own process group, standard input empty, no blocked signals, no TF_CONFIG, killed by
// the kernel when this thread's process dies. Throws std::system_error.
[[nodiscard]] ChildProcess start_child(const ChildOptions& options);

}  // namespace disttf::roles
