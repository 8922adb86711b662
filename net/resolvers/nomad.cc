// Nomad numbers the allocations of each group from 0. A group is a job: its name is ps, worker or
// chief, or ends in -ps and so on.
#include "net/resolvers/resolver.h"
#include "net/resolvers/tf_config.h"

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

}  // namespace disttf::net
