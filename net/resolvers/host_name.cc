// A pod of a Kubernetes StatefulSet is named NAME-ORDINAL: mnist-worker-0 is worker 0. Other
// machines with such host names are treated alike.
#include "net/resolvers/resolver.h"

namespace disttf::net {

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

}  // namespace disttf::net
