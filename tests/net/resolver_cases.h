// Helpers for the resolvers' tables of cases.
#pragma once

#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "net/resolvers/resolvers.h"

namespace disttf::net {

[[nodiscard]] inline std::string list_of(const std::vector<Address>& addresses) {
  std::string text;
  for (const Address& address : addresses) text += (text.empty() ? "" : ",") + to_string(address);
  return text;
}

// Returns "slurm: worker 1 of ps n1:2222 chief worker n1:2223,n2:2222", or the message that refuses
// the settings.
[[nodiscard]] inline std::string told(const ClusterFlags& flags, const Environment& environment) {
  try {
    const Resolution resolution = find_cluster(flags, environment);
    if (!resolution.found) return std::string(resolution.resolver);
    const auto& [cluster, task, warnings] = *resolution.found;
    validate(cluster, task);
    return std::string(resolution.resolver) + ": " + to_string(task) + " of ps " +
           list_of(cluster.ps) + " chief " + list_of(cluster.chief) + " worker " +
           list_of(cluster.workers);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
}

struct Case {
  const char* name;
  ClusterFlags flags;
  Environment environment;
  std::string answer;
};
inline Case row(const char* name, ClusterFlags flags, Environment environment, std::string answer) {
  return {name, std::move(flags), std::move(environment), std::move(answer)};
}
inline void PrintTo(const Case& each, std::ostream* out) { *out << each.name; }

inline constexpr auto kNameOf = [](const auto& each) { return std::string(each.param.name); };

// Two ps and three workers whose addresses follow a pattern.
[[nodiscard]] inline ClusterFlags pattern(std::string hosts = "m-{job}-{index}.m:2222") {
  return {.ps = 2, .workers = 3, .task_hosts = std::move(hosts)};
}
[[nodiscard]] inline ClusterFlags with_job(ClusterFlags flags, Job job) {
  flags.job = job;
  return flags;
}
[[nodiscard]] inline ClusterFlags named(std::string resolver, ClusterFlags flags = {}) {
  flags.resolver = std::move(resolver);
  return flags;
}
[[nodiscard]] inline ClusterFlags lists(Job job, std::size_t index) {
  return {.job = job, .task_index = index, .ps_hosts = "p:1", .worker_hosts = "w0:1,w1:1"};
}

inline const std::string kM =
    " of ps m-ps-0.m:2222,m-ps-1.m:2222 chief  worker "
    "m-worker-0.m:2222,m-worker-1.m:2222,m-worker-2.m:2222";

[[nodiscard]] inline Environment both(Environment one, const Environment& other) {
  one.insert(other.begin(), other.end());
  return one;
}

}  // namespace disttf::net
