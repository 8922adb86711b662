// TFMesos' tfrun sets these variables for each command that it starts on Mesos. It has only ps and
// workers.
#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"
#include "net/wire/text.h"

namespace disttf::net {
namespace {

constexpr const char* kPsHosts = "TFMESOS_PS_HOSTS";
constexpr const char* kWorkerHosts = "TFMESOS_WORKER_HOSTS";
constexpr const char* kJobName = "TFMESOS_JOB_NAME";
constexpr const char* kTaskIndex = "TFMESOS_TASK_INDEX";

[[nodiscard]] bool is_distributed(const Environment& environment) {
  const auto value = variable(environment, "TFMESOS_DISTRIBUTED");
  if (!value || *value == "0") return false;
  if (*value != "1") {
    throw std::invalid_argument("TFMESOS_DISTRIBUTED is " + net::quoted(*value) +
                                "; expected 1 or 0");
  }
  return true;
}

}  // namespace

std::optional<Found> find_in_tfmesos(const ClusterFlags& /*flags*/,
                                     const Environment& environment) {
  // Without the switch the other variables are ignored, even where they are set.
  if (!is_distributed(environment)) return std::nullopt;
  const auto needed = [&](const char* name) {
    return needed_variable(environment, name, "TFMESOS_DISTRIBUTED=1 comes together with it");
  };
  Found found;
  Cluster& cluster = found.answer.cluster;
  cluster.ps = parse_address_list(kPsHosts, needed(kPsHosts));
  cluster.workers = parse_address_list(kWorkerHosts, needed(kWorkerHosts));
  const std::string_view name = needed(kJobName);
  const std::optional<Job> job = job_from_name(name);
  if (!job) {
    throw std::invalid_argument(std::string(kJobName) + " is " + net::quoted(name) +
                                "; expected ps or worker");
  }
  TaskId& task = found.answer.task;
  task = {*job, parse_whole_number(kTaskIndex, needed(kTaskIndex), kMaxTaskIndex)};
  validate(cluster, task, {.ps = kPsHosts, .workers = kWorkerHosts, .index = kTaskIndex});
  found.facts = {{"job", std::string(job_name(task.job)), kJobName},
                 {"index", std::to_string(task.index), kTaskIndex},
                 {"ps", join(cluster.ps), kPsHosts},
                 {"workers", join(cluster.workers), kWorkerHosts}};
  return found;
}

}  // namespace disttf::net
