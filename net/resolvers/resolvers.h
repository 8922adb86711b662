// Who this task is and with whom: from its flags, or from the environment that an orchestrator
// started it in.
//
// A resolver knows one orchestrator. It is a pure function of flags and environment variables: a
// cluster and a task, nothing where its variables are not there, or one sentence about what is
// wrong with them. resolvers.cc has the table of all, in the order in which they are asked:
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
// The first three know the whole cluster, so all of them that are there must agree. The others are
// asked in order when none of the first three is there, and the first that knows is believed; what
// the flags say besides (job, index, counts) must agree with it. When none of these knows the task,
// --task_hosts with --job_name and --task_index does. MPI and torchrun tell a task nothing about
// addresses; they are recognised so that no task trains alone by mistake.
//
// Pure functions; callable from any thread. The environment is read by main only.
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

// Name -> value of the variables that are set. HOSTNAME is the machine's own name, whatever the
// variable says: batch systems hand on that of the machine the job came from.
using Environment = std::map<std::string, std::string, std::less<>>;

// What the command line says about the cluster. Empty: not given.
struct ClusterFlags {
  std::string resolver = "auto";               // --resolver: a name of the table above, or auto
  std::optional<Job> job = {};                 // of the command (ps, worker, chief) or --job_name
  std::optional<std::size_t> task_index = {};  // --task_index
  std::string ps_hosts = {};
  std::string worker_hosts = {};
  std::string chief_host = {};
  // For environments that do not tell the whole cluster:
  std::optional<std::size_t> ps = {};       // --ps: how many
  std::optional<std::size_t> workers = {};  // --workers: how many
  bool chief = false;                       // --chief: there is a chief task
  // More than that may join.
  std::optional<std::size_t> max_workers = {};  // --max_workers
  std::string task_hosts = {};                  // --task_hosts: see net/resolvers/task_hosts.h
  std::uint16_t port_base = 2222;               // --port_base
};

// One thing that was found, and where: {"index", "1", "NOMAD_ALLOC_INDEX"}.
struct Fact {
  std::string what;   // resolver, job, index, ps, workers, chief, evaluators, max_workers
  std::string value;  // as the messages show it
  std::string from;   // a variable, a flag, or a field of TF_CONFIG
};

struct Resolution {
  std::string_view resolver;            // whose answer it is; "local" where there is no cluster
  std::optional<ClusterAndTask> found;  // valid; nullopt: train on this machine
  std::vector<Fact> facts;
  std::vector<std::string> warnings;  // all of them: found->warnings is empty
};

// Throws std::invalid_argument with one sentence: the variable or flag, its value, what is allowed.
[[nodiscard]] Resolution find_cluster(const ClusterFlags& flags, const Environment& environment);

// "auto", then the table's names in their order, "local" last: what --resolver takes.
[[nodiscard]] std::vector<std::string> resolver_names();

// Every variable that a resolver reads, HOSTNAME included.
[[nodiscard]] std::span<const char* const> resolver_variables();

// Whether a variable is set that alone says "this is a task of a cluster": TF_CONFIG or TFMesos'.
[[nodiscard]] bool is_task_environment(const Environment& environment);

}  // namespace disttf::net
