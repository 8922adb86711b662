#include "roles/run/task.h"

namespace disttf::roles {

std::string seconds_text(std::chrono::seconds seconds) {
  return std::to_string(seconds.count()) + " s";
}

std::string describe(const net::Cluster& cluster, const net::TaskId& task) {
  std::string text = net::to_string(task);
  const auto& tasks = cluster.tasks_of(task.job);
  if (task.index < tasks.size() && tasks[task.index].port != 0) {
    text += " (" + net::to_string(tasks[task.index]) + ")";
  }
  return text;
}

net::TaskId host_of_range(const net::Cluster& cluster, std::size_t range, std::uint8_t replica) {
  return {.job = net::Job::kPs, .index = (range + replica) % cluster.ps.size()};
}

}  // namespace disttf::roles
