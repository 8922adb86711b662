#include "main/cluster_source.h"

#include <stdexcept>

#include "net/tf_config.h"

namespace disttf {
namespace {

// The job that the command itself stands for.
std::optional<net::Job> job_of(Command command) {
  switch (command) {
    case Command::kPs:
      return net::Job::kPs;
    case Command::kWorker:
      return net::Job::kWorker;
    case Command::kChief:
      return net::Job::kChief;
    default:
      return std::nullopt;
  }
}

// The job that command and --job_name agree on.
std::optional<net::Job> job_from_flags(Command command, const Flags& flags) {
  const std::optional<net::Job> implied = job_of(command);
  if (flags.job_name.empty()) {
    return implied;
  }
  const std::optional<net::Job> named = net::job_from_name(flags.job_name);
  if (!named) {
    throw std::invalid_argument("--job_name: \"" + flags.job_name +
                                "\" is not ps, worker or chief");
  }
  if (implied && implied != named) {
    throw std::invalid_argument("--job_name: \"" + flags.job_name + "\" contradicts the command " +
                                std::string(net::job_name(*implied)));
  }
  return named;
}

net::ClusterAndTask from_flags(std::optional<net::Job> job, const Flags& flags) {
  net::ClusterAndTask found;
  found.cluster.ps = net::parse_address_list("--ps_hosts", flags.ps_hosts);
  found.cluster.workers = net::parse_address_list("--worker_hosts", flags.worker_hosts);
  found.cluster.chief = net::parse_address_list("--chief_host", flags.chief_host);
  if (!job) {
    throw std::invalid_argument(
        "--job_name: missing; with --ps_hosts and --worker_hosts it says which task this is: ps, "
        "worker or chief");
  }
  found.task.job = *job;
  const std::size_t tasks = found.cluster.tasks_of(*job).size();
  if (!flags.task_index && tasks > 1 && *job != net::Job::kChief) {
    throw std::invalid_argument("--task_index: missing; there are " + std::to_string(tasks) + " " +
                                std::string(net::job_name(*job)) + " tasks, so 0 to " +
                                std::to_string(tasks - 1));
  }
  found.task.index = static_cast<std::size_t>(flags.task_index.value_or(0));
  net::validate(found.cluster, found.task);
  return found;
}

void check_against_flags(const net::ClusterAndTask& found, std::optional<net::Job> job,
                         const Flags& flags) {
  const std::string own = net::to_string(found.task);
  if (job && *job != found.task.job) {
    throw std::invalid_argument("TF_CONFIG.task.type: this is " + own +
                                " there, but the command line says " +
                                std::string(net::job_name(*job)));
  }
  if (flags.task_index && static_cast<std::size_t>(*flags.task_index) != found.task.index) {
    throw std::invalid_argument("TF_CONFIG.task.index: this is " + own +
                                " there, but --task_index is " + std::to_string(*flags.task_index));
  }
}

}  // namespace

std::optional<net::ClusterAndTask> find_cluster(Command command, const Flags& flags,
                                                std::string_view tf_config) {
  const std::optional<net::Job> job = job_from_flags(command, flags);
  std::optional<net::ClusterAndTask> from_environment = net::parse_tf_config(tf_config);
  const bool has_flags =
      !flags.ps_hosts.empty() || !flags.worker_hosts.empty() || !flags.chief_host.empty();
  if (has_flags) {
    net::ClusterAndTask found = from_flags(job, flags);
    if (from_environment) {
      if (net::hash_of(from_environment->cluster) != net::hash_of(found.cluster) ||
          from_environment->task != found.task) {
        throw std::invalid_argument(
            "TF_CONFIG and the flags describe different clusters or tasks (" +
            net::to_string(from_environment->task) + " and " + net::to_string(found.task) +
            "); give one of them");
      }
    }
    return found;
  }
  if (from_environment) {
    check_against_flags(*from_environment, job, flags);
    return from_environment;
  }
  if (job) {
    throw std::invalid_argument("--ps_hosts: missing; " + std::string(net::job_name(*job)) +
                                " needs --ps_hosts and --worker_hosts, or a TF_CONFIG with a "
                                "cluster");
  }
  if (flags.task_index) {
    throw std::invalid_argument("--task_index: " + std::to_string(*flags.task_index) +
                                " is of no cluster; it needs --job_name, --ps_hosts and "
                                "--worker_hosts, or a TF_CONFIG with a cluster");
  }
  return std::nullopt;
}

}  // namespace disttf
