#include "run/task.h"

namespace disttf::roles {

std::string seconds_text(std::chrono::seconds seconds) {
  return std::to_string(seconds.count()) + " s";
}

std::string describe(const net::Cluster& cluster, const net::TaskId& task) {
  std::string text = net::to_string(task);
  const auto& tasks = cluster.tasks_of(task.job);
  // A worker that a sparse or open cluster does not list has port 0.
  if (task.index < tasks.size() && tasks[task.index].port != 0) {
    text += " (" + net::to_string(tasks[task.index]) + ")";
  }
  return text;
}

net::TaskId host_of_range(const net::Cluster& cluster, std::size_t range, std::uint8_t replica) {
  // The backup of a range is on the ps after its primary's, so that one lost ps takes only one copy
  // of any range with it.
  return {.job = net::Job::kPs, .index = (range + replica) % cluster.ps.size()};
}

}  // namespace disttf::roles
