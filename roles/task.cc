#include "roles/task.h"

#include <algorithm>
#include <random>
#include <thread>

#include "net/descriptor_limit.h"
#include "roles/outcome.h"

namespace disttf::roles {

std::size_t threads_of(const Task& task) {
  constexpr std::size_t kMostOfPs = 4;
  if (task.threads != 0 || task.self.job != net::Job::kPs) {
    return std::max<std::size_t>(task.threads, 1);
  }
  return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, kMostOfPs);
}

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

void throw_if_out_of_descriptors(std::error_code error, const std::string& what) {
  if (net::is_out_of_descriptors(error)) {
    throw Failure(kError, "cannot " + what + ": " + error.message() + net::descriptor_hint(error));
  }
}

std::uint64_t random_incarnation() {
  std::random_device device;
  const std::uint64_t high = device();
  return (high << 32U) | device();
}

}  // namespace disttf::roles
