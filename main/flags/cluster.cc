#include "main/flags/cluster.h"

#include <CLI/CLI.hpp>
#include <stdexcept>

#include "main/flag_values.h"
#include "main/flags/group_names.h"
#include "net/resolvers/tf_config.h"
#include "roles/run/run_config.h"

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
  if (names_job) {
    app.add_option("--job_name", job_name, "`train`, `server`: the job, `ps`, `worker` or `chief`")
        ->type_name("JOB")
        ->group(kClusterGroup);
  } else {
    // TensorFlow's tutorials pass --job_name to every task: accepted if it agrees with the command.
    app.add_option("--job_name", job_name)->group(kHiddenGroup);
  }
  app.add_option("--task_index,--worker_index", given.task_index,
                 "index in the job's list, from 0; optional if the list has one entry")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex))
      ->group(kClusterGroup);
}

void ClusterFlags::add_lists(CLI::App& app) {
  app.add_option("--ps_hosts", given.ps_hosts, "parameter servers in order, `host:port,host:port`")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--worker_hosts", given.worker_hosts,
                 "workers; worker 0 is the chief if none is listed")
      ->type_name("HOST:PORT,...")
      ->group(kClusterGroup);
  app.add_option("--chief_host,--chief_hosts", given.chief_host, "a separate chief")
      ->type_name("HOST:PORT")
      ->group(kClusterGroup);
}

void ClusterFlags::add_finding(CLI::App& app) {
  app.add_option(
         "--resolver", given.resolver,
         "how the cluster is found: `flags`, `tf_config`, `tfmesos`, `nomad`, `indexed_job`, "
         "`slurm`, `marathon`, `statefulset`, `local`; `auto`: tries these in order")
      ->type_name("NAME")
      ->check(one_of(net::resolver_names()))
      ->capture_default_str()
      ->group(kFindGroup);
  app.add_option("--ps,-s", given.ps, "number of parameter servers")
      ->type_name("N")
      ->transform(whole_number(1, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_option("--workers,-w", given.workers, "number of workers")
      ->type_name("N")
      ->transform(whole_number(0, net::kMaxTaskIndex + 1))
      ->group(kFindGroup);
  app.add_flag("--chief", given.chief, "the cluster has a separate chief")
      ->transform(boolean())
      ->group(kFindGroup);
  app.add_option(
         "--task_hosts", given.task_hosts,
         "address pattern, such as `mnist-{job}-{index}.mnist:2222`; "
         "[fields](resolvers.md#counts-places-patterns): {job}, {index}, {place}, {port}, {host}")
      ->type_name("PATTERN")
      ->group(kFindGroup);
  app.add_option("--port_base", given.port_base,
                 "port of the first task of each Slurm node; with `{port}` in `--task_hosts`, of "
                 "the first task")
      ->type_name("PORT")
      ->transform(whole_number(1, 65535))
      ->capture_default_str()
      ->group(kFindGroup);
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

void add_max_workers(CLI::App& app, std::size_t& max_workers, const char* group) {
  app.add_option("--max_workers", max_workers,
                 "most workers at once; more than are listed may join if all tasks have this flag "
                 "[those that are listed]")
      ->type_name("N")
      ->transform(whole_number(1, roles::kMaxTrainers))
      ->group(group);
}

}  // namespace disttf
