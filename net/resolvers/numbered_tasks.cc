// Nomad numbers the allocations of each group from 0. A group is a job: its name is ps, worker or
// chief, or ends in -ps and so on.
#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"
#include "net/wire/text.h"

namespace disttf::net {

std::optional<Found> find_in_nomad(const ClusterFlags& flags, const Environment& environment) {
  const auto index = variable(environment, "NOMAD_ALLOC_INDEX");
  const auto group = variable(environment, "NOMAD_GROUP_NAME");
  if (!index || !group) return std::nullopt;
  return find_by_clues(flags,
                       {.job = job_at_end(*group),
                        .job_from = "NOMAD_GROUP_NAME",
                        .index = parse_whole_number("NOMAD_ALLOC_INDEX", *index, kMaxTaskIndex),
                        .index_from = "NOMAD_ALLOC_INDEX",
                        .may_be_place = true});
}

// A pod of a Kubernetes Indexed Job: its host name is NAME-INDEX. Either one Job for each disttf
// job, named like mnist-worker, or one Job for all tasks, with {place} in --task_hosts.

std::optional<Found> find_in_indexed_job(const ClusterFlags& flags,
                                         const Environment& environment) {
  const auto text = variable(environment, "JOB_COMPLETION_INDEX");
  if (!text) return std::nullopt;
  Clues clues{.job = std::nullopt,
              .job_from = "HOSTNAME",
              .index = parse_whole_number("JOB_COMPLETION_INDEX", *text, kMaxTaskIndex),
              .index_from = "JOB_COMPLETION_INDEX",
              .may_be_place = true};
  const auto named = task_in_name(host_label(environment));
  // With hostNetwork the name is the node's, and its number is unrelated.
  if (named && named->index == clues.index) clues.job = named->job;
  return find_by_clues(flags, clues);
}

// A pod of a Kubernetes StatefulSet is named NAME-ORDINAL: mnist-worker-0 is worker 0. Other
// machines with such host names are treated alike.

std::string_view host_label(const Environment& environment) {
  const std::string_view name = variable(environment, "HOSTNAME").value_or("");
  return name.substr(0, name.find('.'));
}

std::optional<Found> find_in_host_name(const ClusterFlags& flags, const Environment& environment) {
  // Any machine may have such a name, so flags that define the task completely take precedence.
  const bool said = flags.job && flags.task_index && flags.resolver == "auto";
  const auto named = task_in_name(host_label(environment));
  if (!named || said) return std::nullopt;
  return find_by_clues(
      flags,
      {.job = named->job, .job_from = "HOSTNAME", .index = named->index, .index_from = "HOSTNAME"});
}

// Marathon: one app for each task, /mnist/worker-0. Mesos-DNS names it
// worker-0-mnist.marathon.mesos.

namespace {

// Warns if the scheduler has assigned another port than the one that the other tasks connect to.
void warn_of_other_port(const Environment& environment, Found& found) {
  const auto text = variable(environment, "PORT0");
  // No task connects to an evaluator, so its port does not matter.
  if (!text || found.answer.task.job == Job::kEvaluator) return;
  const std::size_t port = parse_whole_number("PORT0", *text, 65535);
  const Address& own = found.answer.cluster.address_of(found.answer.task);
  if (port == own.port) return;
  found.answer.warnings.push_back("PORT0 is " + std::to_string(port) + ", but this task is " +
                                  to_string(own) +
                                  " to the others; with host networking give it that port and "
                                  "requirePorts");
}

}  // namespace

std::optional<Found> find_in_marathon(const ClusterFlags& flags, const Environment& environment) {
  const auto id = variable(environment, "MARATHON_APP_ID");
  if (!id) return std::nullopt;
  const std::string_view name = id->substr(id->rfind('/') + 1);  // npos + 1 is 0
  // There is only one chief, so its number may be missing.
  std::optional<TaskId> named = task_in_name(name);
  if (!named && job_at_end(name) == Job::kChief) named = TaskId{Job::kChief, 0};
  // An app of any name is fine where the flags define the task completely.
  if (!named && flags.job && flags.task_index) return std::nullopt;
  if (!named) {
    throw std::invalid_argument("MARATHON_APP_ID is " + net::quoted(*id) +
                                "; expected an app named like /mnist/worker-0: ps, worker or "
                                "chief and the index");
  }
  Found found = find_by_clues(flags, {.job = named->job,
                                      .job_from = "MARATHON_APP_ID",
                                      .index = named->index,
                                      .index_from = "MARATHON_APP_ID"});
  warn_of_other_port(environment, found);
  return found;
}

}  // namespace disttf::net
