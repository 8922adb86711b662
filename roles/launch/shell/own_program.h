// A supervised task: this process starts the task, which is this same file with --program_fd, and
// the user's own program that computes its gradients, and carries out the decisions of
// roles/launch/core/own_program_supervisor.h. The task is confined like every task; this process
// and the program are not.
//
// Who is killed with whom: the task stays in this process's group, so that a terminal's Ctrl-Z
// stops both. Each program leads a group of its own: a Ctrl-C does not reach it before the task has
// ended, and signals reach it behind a wrapper such as a shell script. The kernel kills all of them
// when this process dies. launch freezes and kills them with it (signal_with_children()).
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "roles/launch/shell/child_process.h"
#include "roles/launch/shell/program_command.h"

namespace disttf::roles {

struct OwnProgramOptions {
  net::Cluster cluster;
  net::TaskId self;
  Program program;  // with its placeholders filled in
  bool has_spare = true;
  std::chrono::seconds end_timeout{600};  // of the program, after the run; 0: no limit
  // This process's words without "--" and the program's: those of the task.
  std::vector<std::string> task_words;
  std::vector<std::string> task_variables = {};  // "NAME=value", of the task alone
  // Of the task, as its words say; taken over. -1: none.
  int listen_fd = -1;
  int progress_fd = -1;
};

// Starts a process of the program, which leads a group. `socket`: the program's end, borrowed.
// Throws std::system_error.
struct ProgramStart {
  const Program& program;
  const net::Cluster& cluster;
  const net::TaskId& self;
  int socket = -1;
  bool is_spare = false;
  bool prints_to_error = false;  // see ChildOptions
  bool shares_machine = false;   // other trainers' programs compute on it, too
};
[[nodiscard]] ChildProcess start_program_process(const ProgramStart& start);

// Returns the exit code: the task's; 1 if the program has failed. Does not return if a signal
// killed the task: this process dies of it, too. Throws std::system_error if the task cannot be
// started.
int run_own_program(const OwnProgramOptions& options);

}  // namespace disttf::roles
