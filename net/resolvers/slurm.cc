// A Slurm step of several tasks: srun -n 6 disttf train --ps 2. A task's place is its rank
// (SLURM_PROCID), its host is the rank's node, and its port is --port_base plus its number on that
// node.
//
// The nodes of the other ranks are computed from the node list, the task counts and the
// distribution. The result for this task and its node is checked against what Slurm reports,
// because a wrong table would make every task wait for the others.
#include <algorithm>
#include <stdexcept>

#include "net/resolvers/host_list.h"
#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr const char* kNodes = "SLURM_STEP_NODELIST";
constexpr const char* kTasksPerNode = "SLURM_STEP_TASKS_PER_NODE";
constexpr const char* kTasks = "SLURM_STEP_NUM_TASKS";
constexpr const char* kRank = "SLURM_PROCID";
constexpr const char* kNode = "SLURM_NODEID";
constexpr const char* kLocal = "SLURM_LOCALID";
constexpr const char* kRanksHere = "SLURM_GTIDS";
constexpr const char* kDistribution = "SLURM_DISTRIBUTION";
constexpr std::string_view kWhy =
    "srun sets it for the tasks of a step, beside SLURM_STEP_NODELIST";
constexpr std::string_view kDistributionAdvice = "; start the step with srun --distribution=block";
constexpr std::size_t kMostTasks = 3 * (kMaxTaskIndex + 1);

// The position of a rank.
struct Seat {
  std::size_t node = 0;   // index in the node list
  std::size_t local = 0;  // index among the ranks of the node
};

// The positions by rank. Block: fills node 0 first. Cyclic: one rank on each node with room, in
// turn.
[[nodiscard]] std::vector<Seat> seats(const std::vector<std::size_t>& tasks_per_node, bool cyclic) {
  std::vector<Seat> by_rank;
  if (!cyclic) {
    for (std::size_t node = 0; node < tasks_per_node.size(); ++node) {
      for (std::size_t i = 0; i < tasks_per_node[node]; ++i) by_rank.push_back({node, i});
    }
    return by_rank;
  }
  // A node that is full drops out of the later rounds, as in Slurm.
  const std::size_t rounds = *std::ranges::max_element(tasks_per_node);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t node = 0; node < tasks_per_node.size(); ++node) {
      if (round < tasks_per_node[node]) by_rank.push_back({node, round});
    }
  }
  return by_rank;
}

// "block:cyclic,Pack": the part before the colon assigns ranks to nodes, the rest to cores.
[[nodiscard]] bool is_cyclic(const Environment& environment) {
  const std::string_view text = variable(environment, kDistribution).value_or("block");
  const std::string_view name = text.substr(0, text.find_first_of(":,="));
  if (name == "cyclic") return true;
  if (name == "block" || name == "*" || name == "unknown") return false;
  fail(std::string(kDistribution) + " is " + net::quoted(text) +
       ", which does not define which rank is on which node; block and cyclic do" +
       std::string(kDistributionAdvice));
}

struct Step {
  std::size_t tasks = 0;
  std::size_t rank = 0;
  std::vector<std::string> nodes;
  std::vector<Seat> by_rank;
};

[[nodiscard]] std::size_t number(const Environment& environment, const char* name) {
  return parse_whole_number(name, needed_variable(environment, name, kWhy), kMostTasks);
}

void read_layout(const Environment& environment, Step& step) {
  const std::string_view per_node = needed_variable(environment, kTasksPerNode, kWhy);
  step.nodes = expand_host_list(kNodes, needed_variable(environment, kNodes, kWhy));
  const std::vector<std::size_t> counts = expand_task_counts(kTasksPerNode, per_node);
  if (counts.size() != step.nodes.size()) {
    fail(std::string(kTasksPerNode) + " is " + net::quoted(per_node) + ", of " +
         std::to_string(counts.size()) + " nodes, but " + kNodes + " names " +
         std::to_string(step.nodes.size()));
  }
  std::size_t total = 0;
  for (const std::size_t count : counts) total += count;
  if (total != step.tasks) {
    fail(std::string(kTasksPerNode) + " is " + net::quoted(per_node) + ", which makes " +
         std::to_string(total) + " tasks, but " + kTasks + " is " + std::to_string(step.tasks));
  }
  // Only after the checks above is the number of seats the number of tasks, which bounds every
  // rank.
  step.by_rank = seats(counts, is_cyclic(environment));
}

// Checks what Slurm reports about this rank: its node, and its number there.
void check_own_seat(const Environment& environment, const Step& step) {
  const Seat& own = step.by_rank[step.rank];
  const auto check = [&](const char* name, std::size_t computed) {
    if (!variable(environment, name)) return;
    const std::size_t told = number(environment, name);
    if (told == computed) return;
    fail(std::string(name) + " is " + std::to_string(told) + ", but by " + kTasksPerNode +
         " and the distribution it is " + std::to_string(computed) + " for rank " +
         std::to_string(step.rank) + std::string(kDistributionAdvice));
  };
  check(kNode, own.node);
  check(kLocal, own.local);
}

// Checks all ranks of this node: rank 0 has the same position in any distribution.
void check_own_node(const Environment& environment, const Step& step) {
  const auto told = variable(environment, kRanksHere);
  if (!told) return;
  std::string computed;
  for (std::size_t rank = 0; rank < step.tasks; ++rank) {
    if (step.by_rank[rank].node != step.by_rank[step.rank].node) continue;
    if (!computed.empty()) computed += ',';
    computed += std::to_string(rank);
  }
  if (computed == *told) return;
  fail(std::string(kRanksHere) + " is " + net::quoted(*told) + ", but by " + kTasksPerNode +
       " and the distribution node " + net::quoted(step.nodes[step.by_rank[step.rank].node]) +
       " has the ranks " + net::quoted(computed) + std::string(kDistributionAdvice));
}

// Without flags: one ps, and workers for the rest.
[[nodiscard]] TaskCounts counts_from(const ClusterFlags& flags, std::size_t tasks) {
  TaskCounts counts{flags.ps.value_or(1), flags.chief, flags.workers.value_or(0)};
  if (!flags.workers && counts.total() < tasks) counts.workers = tasks - counts.total();
  if (counts.total() != tasks) {
    fail(std::string(kTasks) + " is " + std::to_string(tasks) + ", but " +
         std::to_string(counts.ps) + " ps, " + (counts.chief ? "a chief" : "no chief") + " and " +
         std::to_string(counts.workers) + " workers (--ps, --chief, --workers) are " +
         std::to_string(counts.total()));
  }
  if (counts.total() == counts.ps) {
    fail("--ps: " + std::to_string(counts.ps) + " leaves no trainer among the " +
         std::to_string(tasks) + " tasks of " + kTasks);
  }
  return counts;
}

// A task of a heterogeneous step has its rank in the whole step, but sees only the nodes and task
// counts of its own component. (Before Slurm 20.02 such jobs were called packs.)
void refuse_heterogeneous(const Environment& environment) {
  for (const char* name : {"SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
    const std::string_view size = variable(environment, name).value_or("1");
    if (size == "1") continue;
    fail(std::string(name) + " is " + net::quoted(size) +
         ": a task of a heterogeneous step sees only the nodes of its own component; start "
         "a step of one component (env -u " +
         name +
         " srun --het-group=0), give each task --job_name, --task_index, --ps_hosts and "
         "--worker_hosts, or use --resolver local");
  }
}

[[nodiscard]] std::vector<std::string> hosts_by_position(const Step& step) {
  std::vector<std::string> hosts;
  for (const Seat& seat : step.by_rank) hosts.push_back(step.nodes[seat.node]);
  return hosts;
}

[[nodiscard]] Cluster cluster_from(const ClusterFlags& flags, const TaskCounts& counts,
                                   const Step& step) {
  std::vector<std::string> hosts = hosts_by_position(step);
  if (!flags.task_hosts.empty()) {
    return cluster_from_pattern(flags.task_hosts, counts,
                                {.port_base = flags.port_base, .hosts = std::move(hosts)});
  }
  Cluster cluster;
  for (std::size_t position = 0; position < hosts.size(); ++position) {
    const Job job = task_at(counts, position).job;
    // The number on the node suffices: tasks of different nodes may have the same port.
    const std::size_t port = flags.port_base + step.by_rank[position].local;
    if (port > 65535) {
      fail("--port_base: " + std::to_string(flags.port_base) + " and " +
           std::to_string(step.by_rank[position].local + 1) +
           " tasks on a node lead beyond the last port, 65535");
    }
    std::vector<Address>& list = job == Job::kPs      ? cluster.ps
                                 : job == Job::kChief ? cluster.chief
                                                      : cluster.workers;
    list.push_back(parse_address(kNodes, hosts[position] + ":" + std::to_string(port)));
  }
  return cluster;
}

}  // namespace

std::optional<std::string> slurm_job_without_step(const Environment& environment) {
  if (!variable(environment, "SLURM_JOB_ID") || variable(environment, kNodes)) return std::nullopt;
  for (const char* name : {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_JOB_NUM_NODES", "SLURM_NNODES",
                           "SLURM_NTASKS_PER_NODE", "SLURM_HET_SIZE", "SLURM_PACK_SIZE"}) {
    const auto count = variable(environment, name);
    if (count && *count != "1" && *count != "0") {
      return std::string(name) + " is " + net::quoted(*count) +
             ", but this process is not a task of a step: srun starts all tasks of the job, as in "
             "srun disttf train";
    }
  }
  return std::nullopt;
}

std::optional<Found> find_in_slurm_step(const ClusterFlags& flags, const Environment& environment) {
  // The body of a batch script, or a shell in an allocation, is no step of several tasks.
  if (!variable(environment, kNodes) || !variable(environment, kRank)) return std::nullopt;
  refuse_heterogeneous(environment);
  Step step;
  step.tasks = number(environment, kTasks);
  // A step of one task trains alone, as it would without Slurm.
  if (step.tasks < 2) return std::nullopt;
  step.rank = number(environment, kRank);
  if (step.rank >= step.tasks) {
    fail(std::string(kRank) + " is " + std::to_string(step.rank) + ", but " + kTasks + " is " +
         std::to_string(step.tasks) + "; ranks are below it");
  }
  read_layout(environment, step);
  check_own_seat(environment, step);
  check_own_node(environment, step);
  const TaskCounts counts = counts_from(flags, step.tasks);
  Found found;
  found.answer.cluster = cluster_from(flags, counts, step);
  found.answer.task = task_at(counts, step.rank);
  validate(found.answer.cluster, found.answer.task,
           {.ps = "SLURM_STEP_NODELIST: ps",
            .workers = "SLURM_STEP_NODELIST: worker",
            .chief = "SLURM_STEP_NODELIST: chief",
            .index = kRank});
  const std::string rank = std::string(kRank) + " (the place " + std::to_string(step.rank) + ")";
  found.facts = {{"job", std::string(job_name(found.answer.task.job)), rank},
                 {"index", std::to_string(found.answer.task.index), rank}};
  add_cluster_facts(found.facts, found.answer.cluster,
                    std::string(kNodes) + ", " + kTasksPerNode +
                        (flags.task_hosts.empty() ? "" : " and --task_hosts"));
  return found;
}

}  // namespace disttf::net
