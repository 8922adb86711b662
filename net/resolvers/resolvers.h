// Finds which task of which cluster this process is: from its flags, or from the environment in
// which an orchestrator has started it.
//
// Each resolver handles one orchestrator. It is a pure function of flags and environment variables
// and returns a cluster and a task, or nullopt if its variables are not set, or throws one sentence
// about what is wrong with them. resolvers.cc has the table of all, in the order in which they are
// tried:
//
//   flags        --ps_hosts and --worker_hosts (and see below)
//   tf_config    TF_CONFIG (net/resolvers/tf_config.h)
//   tfmesos      TFMESOS_DISTRIBUTED=1: TFMESOS_PS_HOSTS, _WORKER_HOSTS, _JOB_NAME, _TASK_INDEX
//   nomad        NOMAD_GROUP_NAME is the job, NOMAD_ALLOC_INDEX the index; --task_hosts
//   indexed_job  Kubernetes: the host name's job, JOB_COMPLETION_INDEX; --task_hosts
//   slurm        a step of several tasks: SLURM_STEP_NODELIST, SLURM_PROCID, ...
//   marathon     MARATHON_APP_ID is /group/worker-0; --task_hosts
//   statefulset  Kubernetes: the host name is NAME-worker-0; --task_hosts
//   local        nothing of the above: train on this machine
//
// The first three know the whole cluster, so all of them that are present must agree. The others
// are tried in order if none of the first three is present, and the first result is used. The flags
// (job, index, counts) must agree with it. If none of these finds the task, --task_hosts with
// --job_name and --task_index defines it. MPI and torchrun provide no addresses; they are
// recognised so that no task trains alone by mistake.
//
// Pure functions; callable from any thread. Only main reads the environment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/wire/cluster.h"

namespace disttf::net {

// Name -> value of the variables that are set. HOSTNAME is always the machine's own name, because
// batch systems pass on the variable of the machine that submitted the job.
using Environment = std::map<std::string, std::string, std::less<>>;

// What the command line says about the cluster. Empty: not given.
struct ClusterFlags {
  std::string resolver = "auto";               // --resolver: a name of the table above, or auto
  std::optional<Job> job = {};                 // of the command (ps, worker, chief) or --job_name
  std::optional<std::size_t> task_index = {};  // --task_index
  std::string ps_hosts = {};
  std::string worker_hosts = {};
  std::string chief_host = {};
  // For environments that do not provide the whole cluster:
  std::optional<std::size_t> ps = {};       // --ps: how many
  std::optional<std::size_t> workers = {};  // --workers: how many
  bool chief = false;                       // --chief: there is a chief task
  // More workers than that may join.
  std::optional<std::size_t> max_workers = {};  // --max_workers
  std::string task_hosts = {};                  // --task_hosts: see net/resolvers/task_hosts.h
  std::uint16_t port_base = 2222;               // --port_base
};

// One fact and its source: {"index", "1", "NOMAD_ALLOC_INDEX"}.
struct Fact {
  std::string what;   // resolver, job, index, ps, workers, chief, evaluators, max_workers
  std::string value;  // as messages show it
  std::string from;   // a variable, a flag, or a field of TF_CONFIG
};

struct Resolution {
  std::string_view resolver;            // that has answered; "local" if there is no cluster
  std::optional<ClusterAndTask> found;  // valid; nullopt: train on this machine
  std::vector<Fact> facts;
  std::vector<std::string> warnings;  // all of them: found->warnings is empty
};

// Throws std::invalid_argument with one sentence: the variable or flag, its value, what is allowed.
[[nodiscard]] Resolution find_cluster(const ClusterFlags& flags, const Environment& environment);

// "auto", then the table's names in their order, then "local": the values of --resolver.
[[nodiscard]] std::vector<std::string> resolver_names();

// Every variable that a resolver reads, including HOSTNAME.
[[nodiscard]] std::span<const char* const> resolver_variables();

// Whether a variable is set that by itself means "this is a task of a cluster": TF_CONFIG or
// TFMesos'.
[[nodiscard]] bool is_task_environment(const Environment& environment);

}  // namespace disttf::net
