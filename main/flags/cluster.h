// The flags that set a task's identity and its cluster.
#pragma once

#include <CLI/App.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "net/resolvers/resolvers.h"

namespace disttf {

// The values as written, before they are checked against one another.
struct ClusterFlags {
  std::string job_name;
  net::ClusterFlags given = {};  // without the job

  // --job_name and --task_index. `names_job`: --job_name is shown in the help, because no job
  // follows from the command. Other commands accept it if it agrees with them.
  void add_identity(CLI::App& app, bool names_job);
  // The lists of the tasks' addresses.
  void add_lists(CLI::App& app);
  // The resolver, and what it may leave open: counts of tasks, the pattern of addresses.
  void add_finding(CLI::App& app);

  [[nodiscard]] bool has_lists() const;

  // The flags with the job. `implied`: the job that the command implies. Throws
  // std::invalid_argument if --job_name is malformed or contradicts it.
  [[nodiscard]] net::ClusterFlags for_resolvers(std::optional<net::Job> implied = {}) const;

  // The cluster, for a process that is no task of it. Throws std::invalid_argument, also if no
  // cluster is described, or one without workers.
  [[nodiscard]] net::Cluster find_lists(const net::Environment& environment) const;
};

// --max_workers: more workers may join than the lists name.
void add_max_workers(CLI::App& app, std::optional<std::size_t>& max_workers, const char* group);

}  // namespace disttf
