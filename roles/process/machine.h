// What a task takes from the machine that it runs on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "roles/run/task.h"

namespace disttf::roles {

// A trainer computes alone unless it is told otherwise: there may be others on its host. A ps takes
// the processors that it can use, 4 at most: more are not faster at what memory limits, and it
// computes only while the trainers wait.
[[nodiscard]] std::size_t threads_of(const Task& task);

// How many this process may run on, for whoever asks where there is room: with `launch --cpus`, or
// taskset, fewer than the machine has. Where it has more than 1024: all of the machine. At least 1.
[[nodiscard]] std::size_t allowed_processors() noexcept;
// How many it can keep busy, for whoever asks how many threads to start: those that it may run on,
// or as many as its control group gives it time of (roles/process/control_group.h, read once), part
// of one being one. In a container often fewer. At least 1.
[[nodiscard]] std::size_t processors() noexcept;
// ... of `allowed` ones, with time of `limit`; nullopt: of all.
[[nodiscard]] std::size_t usable_processors(std::size_t allowed,
                                            std::optional<double> limit) noexcept;

// How many of the run's tasks are on this one's host, going by their addresses. Of a sparse or open
// cluster a task knows only some.
struct TasksHere {
  std::size_t ps = 0;
  std::size_t trainers = 0;
};
[[nodiscard]] TasksHere tasks_here(const Task& task);
// Whether each trainer of this host has processors of its own, as many as it has threads.
[[nodiscard]] bool have_processors_each(const Task& task);

// Throws Failure, "cannot `what`: Too many open files; this process may have ...", where a limit on
// descriptors is why: to try again would not help.
void throw_if_out_of_descriptors(std::error_code error, const std::string& what);

// What no other process has drawn.
[[nodiscard]] std::uint64_t random_number();

// Of a process that begins now: see roles/run/incarnation.h.
[[nodiscard]] std::uint64_t new_incarnation();

}  // namespace disttf::roles
