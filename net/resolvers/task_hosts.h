// --task_hosts: one pattern for the addresses of all tasks, where an orchestrator numbers them.
//
//   mnist-{job}-{index}.mnist:2222     {job}    ps, chief or worker
//   mnist-{place}.mnist:2222           {index}  from 0, in its job
//   {job}-{index}-mnist.mesos:{port}   {place}  from 0, among all tasks: ps, then chief, then
//   workers {host}-ib:{port}                   {port}   --port_base plus the place
//                                      {host}   of Slurm alone: the node the task runs on
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

// How many tasks there are.
struct TaskCounts {
  std::size_t ps = 0;
  bool chief = false;
  std::size_t workers = 0;
  [[nodiscard]] std::size_t total() const noexcept { return ps + (chief ? 1 : 0) + workers; }
  [[nodiscard]] std::size_t of(Job job) const noexcept;  // an evaluator: none
};

// The task at a place: ps first, then the chief, then the workers. REQUIRES: place < total().
[[nodiscard]] TaskId task_at(const TaskCounts& counts, std::size_t place);

// Whether {name} stands in the pattern.
[[nodiscard]] bool has_word(std::string_view pattern, std::string_view name);

struct PatternValues {
  std::uint16_t port_base = 2222;
  // By place, for {host}; empty: the pattern may not hold it.
  std::vector<std::string> hosts;
};

// The cluster that the pattern describes. Throws std::invalid_argument with one sentence: what of
// the pattern is wrong, a port beyond 65535, or that two tasks would get the same address.
[[nodiscard]] Cluster cluster_from_pattern(std::string_view pattern, const TaskCounts& counts,
                                           const PatternValues& values);

}  // namespace disttf::net
