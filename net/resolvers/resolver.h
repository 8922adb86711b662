// One row of the table of resolvers, and helpers for the rows. Only for net/resolvers/.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/resolvers/resolvers.h"
#include "net/resolvers/task_hosts.h"
#include "net/wire/cluster.h"

namespace disttf::net {

// What one resolver has found. The facts "job" and "index" are always present.
struct Found {
  ClusterAndTask answer;
  std::vector<Fact> facts;
};

// The resolvers, each in its own file. Each returns nullopt when its variables are not set, and
// throws std::invalid_argument when they are invalid.
[[nodiscard]] std::optional<Found> find_in_flags(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_tf_config(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_tfmesos(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_nomad(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_indexed_job(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_slurm_step(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_marathon(const ClusterFlags&, const Environment&);
[[nodiscard]] std::optional<Found> find_in_host_name(const ClusterFlags&, const Environment&);

// MPI and torchrun: throws with what to do instead if one of them has started several tasks.
void refuse_rank_only_launchers(const Environment&);

// Returns a sentence for each engine whose variables show that this process is one of several
// tasks, but do not give the others' addresses. MPI is above.
[[nodiscard]] std::vector<std::string> signs_of_several_tasks(const Environment&);

// Returns a sentence if this is the body of a batch script, or a shell, of a Slurm job with several
// tasks or nodes. nullopt: no such job, or a task of a step.
[[nodiscard]] std::optional<std::string> slurm_job_without_step(const Environment&);

// --- flags.cc ---

[[nodiscard]] bool has_host_lists(const ClusterFlags& flags) noexcept;
// Whether --ps, --workers or --chief is given.
[[nodiscard]] bool has_counts(const ClusterFlags& flags) noexcept;
// The counts of --ps and --workers. Throws a sentence about the one that is missing.
[[nodiscard]] TaskCounts counts_of(const ClusterFlags& flags);
// The cluster of --task_hosts with the counts. Throws if one of them is missing.
[[nodiscard]] Cluster cluster_of_task_hosts(const ClusterFlags& flags);
// For a process that has only flags: throws a sentence about what is missing or wrong in them.
[[nodiscard]] Found find_in_flags_alone(const ClusterFlags& flags);

// --- clues.cc ---

// The variable's value; nullopt if it is not set or blank.
[[nodiscard]] std::optional<std::string_view> variable(const Environment& environment,
                                                       std::string_view name);
// The value of a required variable. `because` ends the sentence: "NAME is not set; " + because.
[[nodiscard]] std::string_view needed_variable(const Environment& environment,
                                               std::string_view name, std::string_view because);
// Throws: `name` is "x"; expected a whole number from 0 to `most`.
[[nodiscard]] std::size_t parse_whole_number(std::string_view name, std::string_view text,
                                             std::size_t most);

// The task that a name such as "mnist-worker-0" or "worker-0" ends with: a job's name and a number
// without leading zeros, each after a hyphen. nullopt: another name.
[[nodiscard]] std::optional<TaskId> task_in_name(std::string_view name);
// The machine's name up to its first dot; empty: unknown.
[[nodiscard]] std::string_view host_label(const Environment& environment);

// The worker of "worker" or "mnist-worker".
[[nodiscard]] std::optional<Job> job_at_end(std::string_view name);

// What an orchestrator that numbers its tasks reports about one of them.
struct Clues {
  std::optional<Job> job;
  std::string job_from;  // the variable
  std::size_t index = 0;
  std::string index_from;     // the variable
  bool may_be_place = false;  // the index is the {place} if the pattern has that
};
// The task that clues and flags together define, in the cluster of --task_hosts.
[[nodiscard]] Found find_by_clues(const ClusterFlags& flags, const Clues& clues);

// How messages name the lists of a cluster that comes from --task_hosts.
inline constexpr ClusterFields kTaskHostsFields = {.ps = "--task_hosts of ps",
                                                   .workers = "--task_hosts of worker",
                                                   .chief = "--task_hosts of chief",
                                                   .evaluators = "--task_hosts of evaluator",
                                                   .index = "--task_index"};

// Appends the facts of a cluster whose lists all have one source.
void add_cluster_facts(std::vector<Fact>& facts, const Cluster& cluster, std::string_view from);
// The address list in the form of a flag.
[[nodiscard]] std::string join(const std::vector<Address>& addresses);

}  // namespace disttf::net
