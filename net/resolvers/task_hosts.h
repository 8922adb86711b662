// --task_hosts: one pattern for the addresses of all tasks, for orchestrators that number them.
//
//   mnist-{job}-{index}.mnist:2222     {job}    ps, chief or worker
//   mnist-{place}.mnist:2222           {index}  from 0, in its job
//   {job}-{index}-mnist.mesos:{port}   {place}  from 0, over all tasks: ps, chief, workers
//   {host}-ib:{port}                   {port}   --port_base plus the place
//                                      {host}   Slurm only: the node that the task runs on
//
// Pure functions; callable from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::net {

// The number of tasks of each job.
struct TaskCounts {
  std::size_t ps = 0;
  bool chief = false;
  std::size_t workers = 0;
  [[nodiscard]] std::size_t total() const noexcept { return ps + (chief ? 1 : 0) + workers; }
  [[nodiscard]] std::size_t of(Job job) const noexcept;  // evaluator: 0
};

// The task at a place: ps first, then the chief, then the workers. REQUIRES: place < total().
[[nodiscard]] TaskId task_at(const TaskCounts& counts, std::size_t position);

// Whether the pattern contains {name}.
[[nodiscard]] bool has_word(std::string_view pattern, std::string_view name);

struct PatternValues {
  std::uint16_t port_base = 2222;
  // By place, for {host}; empty: the pattern must not contain it.
  std::vector<std::string> hosts;
};

// Returns the cluster that the pattern describes. Throws std::invalid_argument with one sentence:
// what is wrong with the pattern, a port above 65535, or that two tasks would get the same address.
[[nodiscard]] Cluster cluster_from_pattern(std::string_view pattern, const TaskCounts& counts,
                                           const PatternValues& values);

}  // namespace disttf::net
