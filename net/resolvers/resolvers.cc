#include "net/resolvers/resolvers.h"

#include <array>
#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

struct Resolver {
  std::string_view name;   // value of --resolver
  std::string_view needs;  // for "... is not there", when it was requested by name
  const char* sign;        // a variable that shows this orchestrator; nullptr: none
  bool knows_all;          // it knows the whole cluster, so two of these must agree
  bool needs_task_hosts;
  std::optional<Found> (*find)(const ClusterFlags&, const Environment&);
};

// In the order of the attempts: explicit settings first, because a task inside an orchestrator may
// match several rows.
constexpr std::array<Resolver, 8> kResolvers = {{
    {.name = "flags",
     .needs = "--ps_hosts and --worker_hosts",
     .sign = nullptr,
     .knows_all = true,
     .needs_task_hosts = false,
     .find = find_in_flags},
    {.name = "tf_config",
     .needs = "TF_CONFIG with a cluster",
     .sign = nullptr,
     .knows_all = true,
     .needs_task_hosts = false,
     .find = find_in_tf_config},
    {.name = "tfmesos",
     .needs = "TFMESOS_DISTRIBUTED=1",
     .sign = nullptr,
     .knows_all = true,
     .needs_task_hosts = false,
     .find = find_in_tfmesos},
    {.name = "nomad",
     .needs = "NOMAD_ALLOC_INDEX with NOMAD_GROUP_NAME",
     .sign = "NOMAD_ALLOC_INDEX",
     .knows_all = false,
     .needs_task_hosts = true,
     .find = find_in_nomad},
    {.name = "indexed_job",
     .needs = "JOB_COMPLETION_INDEX",
     .sign = "JOB_COMPLETION_INDEX",
     .knows_all = false,
     .needs_task_hosts = true,
     .find = find_in_indexed_job},
    {.name = "slurm",
     .needs = "a step of several tasks (SLURM_STEP_NODELIST, SLURM_PROCID, SLURM_STEP_NUM_TASKS)",
     .sign = nullptr,
     .knows_all = false,
     .needs_task_hosts = false,
     .find = find_in_slurm_step},
    {.name = "marathon",
     .needs = "MARATHON_APP_ID",
     .sign = "MARATHON_APP_ID",
     .knows_all = false,
     .needs_task_hosts = true,
     .find = find_in_marathon},
    {.name = "statefulset",
     .needs = "a host name like mnist-worker-0",
     .sign = nullptr,
     .knows_all = false,
     .needs_task_hosts = true,
     .find = find_in_host_name},
}};

constexpr std::array kVariables = {
    "TF_CONFIG",
    "TFMESOS_DISTRIBUTED",
    "TFMESOS_PS_HOSTS",
    "TFMESOS_WORKER_HOSTS",
    "TFMESOS_JOB_NAME",
    "TFMESOS_TASK_INDEX",
    "NOMAD_ALLOC_INDEX",
    "NOMAD_GROUP_NAME",
    "JOB_COMPLETION_INDEX",
    "HOSTNAME",
    "SLURM_STEP_NODELIST",
    "SLURM_STEP_TASKS_PER_NODE",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_PROCID",
    "SLURM_NODEID",
    "SLURM_LOCALID",
    "SLURM_GTIDS",
    "SLURM_DISTRIBUTION",
    "SLURM_JOB_ID",
    "SLURM_NTASKS",
    "SLURM_NPROCS",
    "SLURM_JOB_NUM_NODES",
    "SLURM_NNODES",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_HET_SIZE",
    "SLURM_PACK_SIZE",
    "MARATHON_APP_ID",
    "PORT0",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "PMIX_RANK",
    "MV2_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_SIZE",
    "JSM_NAMESPACE_RANK",
    "JSM_NAMESPACE_SIZE",
    "FLUX_TASK_RANK",
    "FLUX_JOB_SIZE",
    "HOROVOD_RANK",
    "HOROVOD_SIZE",
    "PBS_NUM_NODES",
    "PBS_NP",
    "NHOSTS",
    "LSB_DJOB_NUMPROC",
    "AWS_BATCH_JOB_NUM_NODES",
    "CLOUD_RUN_TASK_COUNT",
    "BATCH_TASK_COUNT",
    "VC_WORKER_NUM",
    "KUBERNETES_SERVICE_HOST",
    "RANK",
    "WORLD_SIZE",
    "GROUP_RANK",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE",
};

// Names the origin of a fact, so that a message tells the user what to change. The ps list stands
// for facts without an entry.
[[nodiscard]] const std::string& source_of(const Found& found, std::string_view what) {
  for (const Fact& fact : found.facts) {
    if (fact.what == what) return fact.from;
  }
  // Terminates: the second call asks for "ps", which falls back to the first fact; there always is
  // one.
  return what == "ps" ? found.facts.front().from : source_of(found, "ps");
}

// Flags that the resolver did not need must agree with its result; otherwise one of the two is
// wrong.
void check_against_flags(const Found& found, const ClusterFlags& flags) {
  const TaskId& task = found.answer.task;
  const std::string there = ": this is " + to_string(task) + " there, but ";
  if (flags.job && *flags.job != task.job) {
    fail(source_of(found, "job") + there + "the command line says " +
         std::string(job_name(*flags.job)));
  }
  if (flags.task_index && *flags.task_index != task.index) {
    fail(source_of(found, "index") + there + "--task_index is " +
         std::to_string(*flags.task_index));
  }
  const Cluster& cluster = found.answer.cluster;
  const auto check_count = [&](const char* flag, std::optional<std::size_t> count,
                               const std::vector<Address>& list, const char* what) {
    // A sparse cluster does not know all workers, so their number cannot be compared.
    if (!count || *count == list.size() || (cluster.sparse && &list == &cluster.workers)) return;
    fail(std::string(flag) + ": " + std::to_string(*count) + " is not the number of " + what +
         ", " + std::to_string(list.size()) + ", in " + source_of(found, what));
  };
  check_count("--ps", flags.ps, cluster.ps, "ps");
  check_count("--workers", flags.workers, cluster.workers, "workers");
  if (flags.chief && cluster.chief.empty()) {
    fail("--chief: true, but " + source_of(found, "chief") + " has no chief task");
  }
}

struct Answer {
  const Resolver* resolver;
  Found found;
};

// The result of the table's first rows: none, or several that agree.
[[nodiscard]] std::optional<Answer> ask_those_that_know_all(const ClusterFlags& flags,
                                                            const Environment& environment) {
  std::optional<Answer> first;
  for (const Resolver& resolver : kResolvers) {
    if (!resolver.knows_all) continue;
    std::optional<Found> found = resolver.find(flags, environment);
    if (!found) continue;
    if (!first) {
      first = Answer{&resolver, std::move(*found)};
      continue;
    }
    const ClusterAndTask& one = first->found.answer;
    const ClusterAndTask& other = found->answer;
    // Equal descriptions from two sources are common, for example TF_CONFIG beside flags that
    // repeat it.
    if (hash_of(one.cluster) == hash_of(other.cluster) && one.task == other.task) continue;
    const auto shown = [](const Resolver& each) {
      return each.name == "flags"       ? "the flags"
             : each.name == "tf_config" ? "TF_CONFIG"
                                        : "TFMESOS_*";
    };
    fail(std::string(shown(resolver)) + " and " + shown(*first->resolver) +
         " describe different clusters or tasks (" + to_string(other.task) + " and " +
         to_string(one.task) + "); give one of them, or select one with --resolver");
  }
  // --task_hosts describes the cluster a second time.
  if (first && !flags.task_hosts.empty() && first->resolver->find != find_in_flags &&
      hash_of(cluster_of_task_hosts(flags)) != hash_of(first->found.answer.cluster)) {
    fail("--task_hosts: " + net::quoted(flags.task_hosts) +
         " and the counts make another cluster than " + source_of(first->found, "ps") +
         " describes; give one of them, or select one with "
         "--resolver");
  }
  return first;
}

[[nodiscard]] std::optional<Answer> ask_the_others(const ClusterFlags& flags,
                                                   const Environment& environment) {
  for (const Resolver& resolver : kResolvers) {
    // Without --task_hosts these know which task this is, but not where the others are, so they
    // cannot form a cluster.
    if (resolver.knows_all || (resolver.needs_task_hosts && flags.task_hosts.empty())) continue;
    if (std::optional<Found> found = resolver.find(flags, environment)) {
      return Answer{&resolver, std::move(*found)};
    }
  }
  return std::nullopt;
}

[[nodiscard]] Answer ask_one(const ClusterFlags& flags, const Environment& environment) {
  for (const Resolver& resolver : kResolvers) {
    if (resolver.name != flags.resolver) continue;
    // The flags report what is missing instead of returning nothing.
    if (resolver.find == find_in_flags) return {&resolver, find_in_flags_alone(flags)};
    if (std::optional<Found> found = resolver.find(flags, environment)) {
      return {&resolver, std::move(*found)};
    }
    fail("--resolver: " + flags.resolver + " needs " + std::string(resolver.needs) +
         ", which is not there");
  }
  fail("--resolver: " + net::quoted(flags.resolver) + " is not one of " +
       joined(resolver_names(), ", "));
}

[[nodiscard]] Resolution resolution_of(Answer answer, const ClusterFlags& flags) {
  check_against_flags(answer.found, flags);
  Resolution result{
      answer.resolver->name, std::move(answer.found.answer), std::move(answer.found.facts), {}};
  result.warnings.swap(result.found->warnings);
  // After the checks: a larger limit changes the cluster's identity.
  if (flags.max_workers) {
    open_to(result.found->cluster, *flags.max_workers);
    result.facts.push_back({"max_workers", std::to_string(*flags.max_workers), "--max_workers"});
  }
  return result;
}

// There is no cluster. Warns if an orchestrator is present whose tasks may be meant to train
// together.
[[nodiscard]] Resolution local(const Environment& environment) {
  Resolution result{"local", std::nullopt, {}, {}};
  for (const Resolver& resolver : kResolvers) {
    if (resolver.sign == nullptr || !variable(environment, resolver.sign)) continue;
    result.warnings.push_back(std::string(resolver.sign) +
                              " is set, but without --task_hosts this task trains alone");
  }
  for (std::string& sentence : signs_of_several_tasks(environment)) {
    result.warnings.push_back(std::move(sentence));
  }
  return result;
}

// The flags describe a part of a cluster, and no resolver provides the rest.
[[nodiscard]] Answer ask_flags_alone(const ClusterFlags& flags, const Environment& environment) {
  try {
    return {&kResolvers.front(), find_in_flags_alone(flags)};
  } catch (const std::invalid_argument& error) {
    // A Slurm job that was started without srun is the most common reason for missing facts.
    const auto slurm = slurm_job_without_step(environment);
    throw std::invalid_argument(error.what() + (slurm ? "; " + *slurm : std::string()));
  }
}

}  // namespace

Resolution find_cluster(const ClusterFlags& flags, const Environment& environment) {
  if (flags.resolver == "local") {
    if (flags.job) {
      fail("--resolver: local trains on this machine, but the command line says " +
           std::string(job_name(*flags.job)));
    }
    return {"local", std::nullopt, {}, {}};
  }
  if (flags.resolver != "auto") return resolution_of(ask_one(flags, environment), flags);
  // A complete description wins over an orchestrator's numbering, which needs flags to be complete.
  std::optional<Answer> answer = ask_those_that_know_all(flags, environment);
  if (!answer) answer = ask_the_others(flags, environment);
  if (answer) return resolution_of(std::move(*answer), flags);
  // Before the local result: otherwise every rank of an MPI launch would train the same model
  // alone.
  refuse_rank_only_launchers(environment);
  const bool meant =
      flags.job || flags.task_index || has_counts(flags) || !flags.task_hosts.empty();
  if (meant) return resolution_of(ask_flags_alone(flags, environment), flags);
  return local(environment);
}

std::vector<std::string> resolver_names() {
  std::vector<std::string> names = {"auto"};
  for (const Resolver& resolver : kResolvers) names.emplace_back(resolver.name);
  names.emplace_back("local");
  return names;
}

std::span<const char* const> resolver_variables() { return kVariables; }

bool is_task_environment(const Environment& environment) {
  return variable(environment, "TF_CONFIG") || variable(environment, "TFMESOS_DISTRIBUTED");
}

}  // namespace disttf::net
