#include "run/process/machine.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "net/waiting/descriptor.h"
#include "run/outcome.h"
#include "run/process/resource_limits.h"
#include "run/task.h"

namespace disttf::roles {
namespace {

std::optional<double> limit_of_group() noexcept {
  try {
    return ControlGroup().processors();
  } catch (const std::exception&) {  // as if there were no limit
    return std::nullopt;
  }
}

}  // namespace

std::size_t threads_of(const Task& task) {
  constexpr std::size_t kMostOfPs = 4;
  if (task.threads != 0 || task.self.job != net::Job::kPs) {
    return std::max<std::size_t>(task.threads, 1);
  }
  return std::clamp<std::size_t>(processors(), 1, kMostOfPs);
}

std::size_t allowed_processors() noexcept {
  cpu_set_t allowed;  // has room for 1024
  return ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
             ? static_cast<std::size_t>(CPU_COUNT(&allowed))
             : std::max(1U, std::thread::hardware_concurrency());
}

std::size_t processors() noexcept {
  static const std::optional<double> kLimit = limit_of_group();
  return usable_processors(allowed_processors(), kLimit);
}

std::size_t usable_processors(std::size_t allowed, std::optional<double> limit) noexcept {
  if (!limit || *limit >= static_cast<double>(allowed)) {
    return allowed;
  }
  return std::max<std::size_t>(static_cast<std::size_t>(std::ceil(*limit)), 1);
}

TasksHere tasks_here(const Task& task) {
  const std::string& host = task.cluster.address_of(task.self).host;
  const auto are_here = [&host](const std::vector<net::Address>& tasks) {
    // Hosts are compared as text: the tasks of one machine are listed under one name, and no name
    // need be resolved.
    return static_cast<std::size_t>(
        std::ranges::count_if(tasks, [&host](const auto& each) { return each.host == host; }));
  };
  return {.ps = are_here(task.cluster.ps),
          .trainers = are_here(task.cluster.workers) + are_here(task.cluster.chief)};
}

bool have_processors_each(const Task& task) {
  // If only a part of the cluster is known, more trainers may share this machine.
  return !task.cluster.sparse && !task.cluster.open &&
         tasks_here(task).trainers * threads_of(task) <= allowed_processors();
}

void throw_if_out_of_descriptors(std::error_code error, const std::string& what) {
  if (net::is_out_of_descriptors(error)) {
    throw Failure(kError, "cannot " + what + ": " + error.message() + net::descriptor_hint(error));
  }
}

std::uint64_t random_number() {
  std::random_device device;
  // std::random_device yields 32 bits at a time.
  const std::uint64_t high = device();
  return (high << 32U) | device();
}

std::uint64_t new_incarnation() {
  const auto since_1970 = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  // The time is in the high bits, so that a restarted task has a higher incarnation than before.
  return make_incarnation(since_1970, random_number());
}

}  // namespace disttf::roles
