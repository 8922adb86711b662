// Marathon: one app for each task, /mnist/worker-0. Mesos-DNS names it
// worker-0-mnist.marathon.mesos.
#include <stdexcept>

#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"
#include "net/wire/text.h"

namespace disttf::net {
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
