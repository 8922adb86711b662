// What a task takes from its machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "run/task.h"

namespace disttf::roles {

// Returns how many threads compute. A trainer has one unless told otherwise, since there may be
// other trainers on its host. A ps has as many as it has processors, at most 4: more are not faster
// when memory is the limit, and it computes only while the trainers wait.
[[nodiscard]] std::size_t threads_of(const Task& task);

// Returns how many processors this process may run on: with `launch --cpus` or taskset fewer than
// the machine has. On machines with more than 1024: all of them. At least 1.
[[nodiscard]] std::size_t allowed_processors() noexcept;
// Returns how many processors it can keep busy: those that it may run on, or as many as the time
// that its control group grants (run/process/resource_limits.h, read once), rounded up. Often fewer
// in a container. At least 1.
[[nodiscard]] std::size_t processors() noexcept;
// The same for `allowed` processors, with time for `limit` of them; nullopt: for all.
[[nodiscard]] std::size_t usable_processors(std::size_t allowed,
                                            std::optional<double> limit) noexcept;

// Returns how many of the run's tasks are on this task's host, by their addresses. In a sparse or
// open cluster a task knows only some.
struct TasksHere {
  std::size_t ps = 0;
  std::size_t trainers = 0;
};
[[nodiscard]] TasksHere tasks_here(const Task& task);
// Returns whether each trainer of this host has as many processors as threads.
[[nodiscard]] bool have_processors_each(const Task& task);

// Throws Failure, "cannot `what`: Too many open files; this process may have ...", if the error is
// a limit on descriptors: trying again would not help.
void throw_if_out_of_descriptors(std::error_code error, const std::string& what);

// A random number that no other process draws.
[[nodiscard]] std::uint64_t random_number();

// For a process that starts now: see run/task.h.
[[nodiscard]] std::uint64_t new_incarnation();

}  // namespace disttf::roles
