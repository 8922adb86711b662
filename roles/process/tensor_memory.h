// Which memory a task's tensors lie in, and so how they travel between trainers and ps, as
// --transport says. The one place in roles/ that knows of more than one way: what a core or a shell
// sees is a gradient that lies somewhere until it is answered, and parameters that lie somewhere
// until the next push. The updates that a primary tells its backup lie in such memory, too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/transport/body_slots.h"
#include "net/transport/gradient_memory.h"
#include "net/transport/parameter_memory.h"
#include "roles/run/run_config.h"
#include "roles/run/task.h"

namespace disttf::roles {

// How many gradients a trainer of the run has memory for, so that ps on its machine can read them
// there: 1; elastic, as many as it pushes in a step while all trainers are here, if they take no
// more than 256 MiB, or as many as take 64. What it pushes besides is sent.
[[nodiscard]] std::size_t gradients_in_memory(const RunConfig& config);
// A trainer's, for `count` gradients of so many floats. nullptr: they lie in no special memory, and
// are sent.
[[nodiscard]] std::unique_ptr<net::GradientMemory> make_gradient_memory(const Task& task,
                                                                        std::size_t floats,
                                                                        std::size_t count);
// A ps's, for an arena of so many floats.
[[nodiscard]] std::shared_ptr<net::ParameterMemory> make_parameter_memory(const Task& task,
                                                                          std::size_t floats,
                                                                          std::size_t trainers);
// Which of its slots is that of the range's primary; those before it are the trainers', by rank.
[[nodiscard]] std::size_t slot_of_primary(std::size_t trainers) noexcept;
// How large the updates of a range are that a primary leaves in its memory for its backup.
struct UpdateShape {
  std::size_t trainers = 0;
  bool is_sync = true;
  // In floats: of a gradient; and of one with the state that its update is made from.
  std::size_t plain = 0;
  std::size_t with_state = 0;
};
// How many updates one with a state is there for: itself and those behind it, which the backup
// makes only where it loses its primary. 1: there is no room for so many, and it makes each at
// once.
[[nodiscard]] std::size_t updates_per_state(const UpdateShape& shape);
// A primary's, for seven that its backup has yet to acknowledge, and for a state, the one before
// it, and the updates since, if all that takes no more than 64 MiB. Else for fewer than seven: two,
// async one for each trainer, up to four. Else for these alone, without states. Else for one, of at
// most 256 MiB. nullptr: they are sent.
[[nodiscard]] std::unique_ptr<net::BodySlots> make_update_slots(const Task& task,
                                                                const UpdateShape& shape);
// The most that a backup has a use for of these, in bytes; and the least.
[[nodiscard]] std::size_t most_of_primary(const UpdateShape& shape);
[[nodiscard]] std::size_t least_of_primary(const UpdateShape& shape);
// A state of at most so many bytes may be held once more than it must be, where that saves time.
inline constexpr std::size_t kSmallStateBytes = std::size_t{64} << 20U;
// A ps's, for cuts of so many bytes that somebody asks for over one connection; and that one's, who
// offers it to be offered the ps's, and has nothing to say in it. nullptr, of a larger state, too:
// they are sent.
[[nodiscard]] std::shared_ptr<net::ParameterMemory> make_cut_memory(const Task& task,
                                                                    std::size_t bytes);
[[nodiscard]] std::unique_ptr<net::GradientMemory> make_cut_reader(const Task& task,
                                                                   std::size_t bytes);
// The most that either has a use for of the other one's, in bytes.
[[nodiscard]] std::size_t most_of_cut(std::size_t bytes) noexcept;
[[nodiscard]] std::size_t most_of_cut_reader() noexcept;
// The most that a ps, of so many, has a use for of a trainer's, in bytes; and a trainer of a ps's,
// whose range has so many floats.
[[nodiscard]] std::size_t most_of_trainer(const RunConfig& config, std::size_t ps);
[[nodiscard]] std::size_t most_of_ps(std::size_t floats, std::size_t trainers) noexcept;

// What a trainer has agreed on with a ps. Throws Failure where --transport insists on another way.
void check_way_to(const Task& task, const std::string& ps, bool is_in_place);
// The same with all of them, for the log.
[[nodiscard]] std::string describe_ways(std::size_t in_place, std::size_t ps);
// The same of a range's primary, once an update has stayed in memory.
[[nodiscard]] std::string describe_way_to_backup(std::size_t range);
// The same of a ps that is asked for cuts.
[[nodiscard]] std::string describe_way_of_cuts(const std::string& ps);

}  // namespace disttf::roles
