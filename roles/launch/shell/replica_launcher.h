// Launch of any program: it runs as every task of a cluster on this machine, and is told which one
// by its words and its environment (roles/launch/shell/replica_command.h). TFMesos' replica mode,
// without Mesos.
//
// The run is done when every worker has ended with 0; programs of ps tasks, which rarely end by
// themselves, are then told to by SIGTERM. The first task that fails ends all others, and its exit
// code is the launcher's. Nothing is started again. Each task is a process group, and what it has
// started goes with it.
//
// The launcher keeps each task's port bound, with SO_REUSEADDR and not listening, as TFMesos does:
// nobody else gets it. A program must set SO_REUSEADDR before it binds, as servers do.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/wire/cluster.h"
#include "roles/launch/shell/run_secret.h"

namespace disttf::roles {

struct ReplicaOptions {
  std::size_t ps = 1;
  std::size_t workers = 2;
  // Words, with placeholders. In each task the initializer runs before the command, which is not
  // started when it fails, and the finalizer after the command, however that has ended.
  std::vector<std::string> command;
  std::vector<std::string> initializer;  // empty: none
  std::vector<std::string> finalizer;    // empty: none
  // The workers whose lines are shown; nullopt: those of all tasks, the ps too. Of a task that
  // fails, the last lines are shown in any case.
  std::optional<std::set<std::size_t>> worker_logs;
  std::string search_path;  // PATH
  SecretOfRun secret = SecretOfRun::kGiven;
};

// Throws std::invalid_argument, with one sentence, when a word has a wrong placeholder or names a
// program that is not there: what run_replica_launcher() would throw, before anything is started.
void validate(const ReplicaOptions& options);

// Standard output and standard error: the lines of the tasks, behind their names, "[worker:1] ...".
// Returns the exit code: 0, the failed task's, 128 + N when signal N killed it, 130/143 on a
// signal. Throws std::system_error when a task cannot be started.
int run_replica_launcher(const ReplicaOptions& options);

}  // namespace disttf::roles
