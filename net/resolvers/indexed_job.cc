// A pod of a Kubernetes Indexed Job: its host name is NAME-INDEX. Either one Job for each disttf
// job, named like mnist-worker, or one Job for all tasks, with {place} in --task_hosts.
#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"

namespace disttf::net {

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

}  // namespace disttf::net
