#include "main/flags/cluster.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/flags/flag_group.h"
#include "net/resolvers/tf_config.h"
#include "run/run_config.h"

namespace disttf {
namespace {

// The job that the command and --job_name agree on. Throws std::invalid_argument if they differ.
std::optional<net::Job> job_from(std::optional<net::Job> implied, const std::string& job_name) {
  if (job_name.empty()) {
    return implied;
  }
  const std::optional<net::Job> named = net::job_from_name(job_name);
  if (!named) {
    throw std::invalid_argument("--job_name: \"" + job_name + "\" is not ps, worker or chief");
  }
  if (implied && implied != named) {
    throw std::invalid_argument("--job_name: \"" + job_name + "\" contradicts the command " +
                                std::string(net::job_name(*implied)));
  }
  return named;
}

}  // namespace

void ClusterFlags::add_identity(CLI::App& app, bool names_job) {
  FlagGroup add(app, kClusterGroup);
  if (names_job) {
    add.text("--job_name", job_name, "JOB",
             "`train`, `server`: the job, `ps`, `worker` or `chief`");
  } else {
    // TensorFlow's tutorials pass --job_name to every task: accepted if it agrees with the command.
    app.add_option("--job_name", job_name)->group(kHiddenGroup);
  }
  add.number("--task_index,--worker_index", given.task_index, "N", 0, net::kMaxTaskIndex,
             "index in the job's list, from 0; optional if the list has one entry");
}

void ClusterFlags::add_lists(CLI::App& app) {
  FlagGroup add(app, kClusterGroup);
  add.text("--ps_hosts", given.ps_hosts, "HOST:PORT,...",
           "parameter servers in order, `host:port,host:port`");
  add.text("--worker_hosts", given.worker_hosts, "HOST:PORT,...",
           "workers; worker 0 is the chief if none is listed");
  add.text("--chief_host,--chief_hosts", given.chief_host, "HOST:PORT", "a separate chief");
}

void ClusterFlags::add_finding(CLI::App& app) {
  FlagGroup add(app, kFindGroup);
  add.choice("--resolver", given.resolver, "NAME", net::resolver_names(),
             "how the cluster is found: `flags`, `tf_config`, `tfmesos`, `nomad`, `indexed_job`, "
             "`slurm`, `marathon`, `statefulset`, `local`; `auto`: tries these in order");
  add.number("--ps,-s", given.ps, "N", 1, net::kMaxTaskIndex + 1, "number of parameter servers");
  add.number("--workers,-w", given.workers, "N", 0, net::kMaxTaskIndex + 1, "number of workers");
  add.toggle("--chief", given.chief, "the cluster has a separate chief");
  add.text(
      "--task_hosts", given.task_hosts, "PATTERN",
      "address pattern, such as `mnist-{job}-{index}.mnist:2222`; "
      "[fields](resolvers.md#counts-places-patterns): {job}, {index}, {place}, {port}, {host}");
  add.number("--port_base", given.port_base, "PORT", 1, 65535,
             "port of the first task of each Slurm node; with `{port}` in `--task_hosts`, of "
             "the first task");
}

bool ClusterFlags::has_lists() const {
  return !given.ps_hosts.empty() || !given.worker_hosts.empty() || !given.chief_host.empty();
}

net::ClusterFlags ClusterFlags::for_resolvers(std::optional<net::Job> implied) const {
  net::ClusterFlags out = given;
  out.job = job_from(implied, job_name);
  return out;
}

net::Cluster ClusterFlags::find_lists(const net::Environment& environment) const {
  net::Cluster cluster;
  // The lists come first, without a resolver: with them the environment of this process, which is
  // in no list, does not matter.
  cluster.ps = net::parse_address_list("--ps_hosts", given.ps_hosts);
  cluster.workers = net::parse_address_list("--worker_hosts", given.worker_hosts);
  cluster.chief = net::parse_address_list("--chief_host", given.chief_host);
  if (cluster.ps.empty() && cluster.trainer_count() == 0) {
    const net::Resolution resolution = net::find_cluster(for_resolvers(), environment);
    if (!resolution.found) {
      throw std::invalid_argument(
          "--ps_hosts: missing; --ps_hosts and --worker_hosts, or a TF_CONFIG, say where the "
          "cluster is");
    }
    cluster = resolution.found->cluster;
  }
  // Validated as an evaluator, the one task that needs no entry in the lists.
  net::validate(cluster, {.job = net::Job::kEvaluator, .index = 0});
  // A sparse list leaves out other workers, and a driver must reach all of them.
  if (cluster.workers.empty() || cluster.sparse) {
    throw std::invalid_argument("--worker_hosts: missing; list all workers, in order");
  }
  return cluster;
}

void add_max_workers(CLI::App& app, std::optional<std::size_t>& max_workers, const char* group) {
  FlagGroup add(app, group);
  add.number("--max_workers", max_workers, "N", 1, roles::kMaxTrainers,
             "most workers at once; more than are listed may join if all tasks have this flag "
             "[those that are listed]");
}

}  // namespace disttf
