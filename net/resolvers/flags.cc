#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

// The index may be omitted if only one task has the job.
[[nodiscard]] std::size_t index_from(const ClusterFlags& flags, Job job, std::size_t tasks) {
  // There is at most one chief.
  if (!flags.task_index && tasks > 1 && job != Job::kChief) {
    fail("--task_index: missing; there are " + std::to_string(tasks) + " " +
         std::string(job_name(job)) + " tasks, so 0 to " + std::to_string(tasks - 1));
  }
  return flags.task_index.value_or(0);
}

[[nodiscard]] Job job_from(const ClusterFlags& flags) {
  if (!flags.job) {
    fail(std::string("--job_name: missing; with ") +
         (has_host_lists(flags) ? "--ps_hosts and --worker_hosts" : "--task_hosts") +
         " it says which task this is: ps, worker or chief");
  }
  return *flags.job;
}

// The facts list the origin of each value for the log.
[[nodiscard]] Found with_facts(ClusterAndTask answer, const ClusterFlags& flags) {
  Found found{std::move(answer), {}};
  const TaskId& task = found.answer.task;
  found.facts = {
      {"job", std::string(job_name(task.job)), "--job_name or the command"},
      {"index", std::to_string(task.index), flags.task_index ? "--task_index" : "the only one"}};
  return found;
}

[[nodiscard]] Found from_lists(const ClusterFlags& flags) {
  if (!flags.task_hosts.empty()) {
    fail("--task_hosts: " + net::quoted(flags.task_hosts) +
         " is not allowed beside --ps_hosts, --worker_hosts and --chief_host");
  }
  ClusterAndTask answer;
  Cluster& cluster = answer.cluster;
  cluster.ps = parse_address_list("--ps_hosts", flags.ps_hosts);
  cluster.workers = parse_address_list("--worker_hosts", flags.worker_hosts);
  cluster.chief = parse_address_list("--chief_host", flags.chief_host);
  // The lists come first, because the index is checked against their length.
  answer.task.job = job_from(flags);
  answer.task.index = index_from(flags, answer.task.job, cluster.tasks_of(answer.task.job).size());
  validate(cluster, answer.task);
  Found found = with_facts(std::move(answer), flags);
  const auto add = [&found](const char* what, const std::vector<Address>& list, const char* flag) {
    if (!list.empty()) found.facts.push_back({what, join(list), flag});
  };
  add("ps", found.answer.cluster.ps, "--ps_hosts");
  add("chief", found.answer.cluster.chief, "--chief_host");
  add("workers", found.answer.cluster.workers, "--worker_hosts");
  return found;
}

[[nodiscard]] Found from_pattern(const ClusterFlags& flags) {
  const TaskCounts counts = counts_of(flags);
  ClusterAndTask answer;
  answer.cluster = cluster_of_task_hosts(flags);
  answer.task.job = job_from(flags);
  answer.task.index = index_from(flags, answer.task.job, counts.of(answer.task.job));
  validate(answer.cluster, answer.task, kTaskHostsFields);
  Found found = with_facts(std::move(answer), flags);
  add_cluster_facts(found.facts, found.answer.cluster, "--task_hosts");
  return found;
}

}  // namespace

bool has_host_lists(const ClusterFlags& flags) noexcept {
  return !flags.ps_hosts.empty() || !flags.worker_hosts.empty() || !flags.chief_host.empty();
}

bool has_counts(const ClusterFlags& flags) noexcept {
  return flags.ps || flags.workers || flags.chief;
}

TaskCounts counts_of(const ClusterFlags& flags) {
  static constexpr std::string_view kWhy =
      ": missing; with --task_hosts it says how many tasks there are";
  if (!flags.ps) fail("--ps" + std::string(kWhy));
  if (!flags.workers) fail("--workers" + std::string(kWhy));
  const TaskCounts counts{*flags.ps, flags.chief, *flags.workers};
  if (counts.ps == 0) fail("--ps: must be at least 1 (got 0)");
  // A chief trains too, so no workers are needed beside it.
  if (counts.total() == counts.ps) {
    fail("--workers: must be at least 1 without --chief (got 0)");
  }
  return counts;
}

Cluster cluster_of_task_hosts(const ClusterFlags& flags) {
  if (flags.task_hosts.empty()) {
    fail(
        "--task_hosts: missing; it says which addresses the tasks have, like "
        "mnist-{job}-{index}.mnist:2222");
  }
  return cluster_from_pattern(flags.task_hosts, counts_of(flags), {flags.port_base, {}});
}

std::optional<Found> find_in_flags(const ClusterFlags& flags, const Environment& /*environment*/) {
  // Counts and patterns alone are completed by another resolver, so they are not an answer here.
  if (!has_host_lists(flags)) return std::nullopt;
  return from_lists(flags);
}

Found find_in_flags_alone(const ClusterFlags& flags) {
  if (has_host_lists(flags)) return from_lists(flags);
  if (!flags.task_hosts.empty()) return from_pattern(flags);
  // Counts without addresses are most likely meant for launch, so the message names both ways.
  if (has_counts(flags)) {
    fail(std::string(flags.ps        ? "--ps"
                     : flags.workers ? "--workers"
                                     : "--chief") +
         ": given, but the addresses of the tasks are unknown; give --task_hosts, or use launch, "
         "which "
         "starts them on this machine");
  }
  if (flags.job) {
    fail("--ps_hosts: missing; " + std::string(job_name(*flags.job)) +
         " needs --ps_hosts and --worker_hosts, or a TF_CONFIG with a cluster, or --task_hosts");
  }
  if (flags.task_index) {
    fail("--task_index: " + std::to_string(*flags.task_index) +
         " needs a cluster: give --job_name, --ps_hosts and --worker_hosts, or a TF_CONFIG "
         "with a cluster");
  }
  fail(
      "--ps_hosts: missing; flags that describe a cluster are --ps_hosts and --worker_hosts, or "
      "--task_hosts");
}

}  // namespace disttf::net
