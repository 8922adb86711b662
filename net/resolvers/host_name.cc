// A pod of a Kubernetes StatefulSet is called NAME-ORDINAL, and so is anything else that was given
// such a host name: mnist-worker-0 is worker 0.
#include "net/resolvers/resolver.h"

namespace disttf::net {

std::string_view host_label(const Environment& environment) {
  const std::string_view name = variable(environment, "HOSTNAME").value_or("");
  return name.substr(0, name.find('.'));
}

std::optional<Found> find_in_host_name(const ClusterFlags& flags, const Environment& environment) {
  // Any machine may be called like this: flags that say all are believed.
  const bool said = flags.job && flags.task_index && flags.resolver == "auto";
  const auto named = task_in_name(host_label(environment));
  if (!named || said) return std::nullopt;
  return find_by_clues(
      flags,
      {.job = named->job, .job_from = "HOSTNAME", .index = named->index, .index_from = "HOSTNAME"});
}

}  // namespace disttf::net
