// Which memory a task's tensors lie in, and so how they travel between trainers and ps, according
// to --transport. It is the only place outside net/ that knows more than one way: cores and shells
// see a gradient that lies somewhere until it is answered, and parameters that lie somewhere until
// the next push. The updates that a primary sends its backup lie in such memory, too.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "net/memory/body_ring.h"
#include "net/memory/parameter_memory.h"
#include "net/tcp/gradient_memory.h"
#include "run/run_config.h"
#include "run/task.h"

namespace disttf::roles {

// Returns for how many gradients a trainer of the run has memory that ps on its machine can read.
// Normally 1. Elastic: as many as it pushes in a step while all trainers are present, up to 256
// MiB, or as many as fit into 64 MiB. Further gradients are sent.
[[nodiscard]] std::size_t gradients_in_memory(const RunConfig& config);
// A trainer's memory, for `count` gradients of `floats` floats. nullptr: no memory is shared, and
// they are sent.
[[nodiscard]] std::unique_ptr<net::GradientMemory> make_gradient_memory(const Task& task,
                                                                        std::size_t floats,
                                                                        std::size_t count);
// A ps's memory, for an arena of `floats` floats.
[[nodiscard]] std::shared_ptr<net::ParameterMemory> make_parameter_memory(const Task& task,
                                                                          std::size_t floats,
                                                                          std::size_t trainers);
// Returns the mailbox number of the range's primary in it; the ones before belong to the trainers,
// by rank.
[[nodiscard]] std::size_t slot_of_primary(std::size_t trainers) noexcept;
// The size of a range's updates that a primary leaves in memory for its backup.
struct UpdateShape {
  std::size_t trainers = 0;
  bool is_sync = true;
  // In floats: of a gradient; and of one with the state that its update starts from.
  std::size_t plain = 0;
  std::size_t with_state = 0;
};
// Returns how many updates share one state: the one that carries it, and those after it, which the
// backup applies only if it loses its primary. 1: there is no room for that, and the backup applies
// each update at once.
[[nodiscard]] std::size_t updates_per_state(const UpdateShape& shape);
// A primary's slot ring. If it takes at most 64 MiB, it has room for seven unacknowledged updates,
// for a state, the previous state, and the updates since. Otherwise for fewer updates: two, or in
// async mode one for each trainer, up to four. Otherwise only for these, without states. Otherwise
// for one update, of at most 256 MiB. nullptr: updates are sent.
[[nodiscard]] std::unique_ptr<net::BodyRing> make_update_slots(const Task& task,
                                                               const UpdateShape& shape);
// The most bytes of it that a backup can use; and the least.
[[nodiscard]] std::size_t most_of_primary(const UpdateShape& shape);
[[nodiscard]] std::size_t least_of_primary(const UpdateShape& shape);
// A state of at most this many bytes may be held one more time if that saves time.
inline constexpr std::size_t kSmallStateBytes = std::size_t{64} << 20U;
// A ps's memory, for snapshot shards of `bytes` bytes that are requested over one connection; and
// the requester's memory, which it offers only in order to be offered the ps's. nullptr, also for a
// larger state: they are sent.
[[nodiscard]] std::shared_ptr<net::ParameterMemory> make_snapshot_memory(const Task& task,
                                                                         std::size_t bytes);
[[nodiscard]] std::unique_ptr<net::GradientMemory> make_snapshot_reader(const Task& task,
                                                                        std::size_t bytes);
// The most bytes of the other side's memory that either can use.
[[nodiscard]] std::size_t most_of_snapshot(std::size_t bytes) noexcept;
[[nodiscard]] std::size_t most_of_snapshot_reader() noexcept;
// The most bytes of a trainer's memory that one of `ps` ps can use; and of a ps's, whose range has
// `floats` floats, that a trainer can use.
[[nodiscard]] std::size_t most_of_trainer(const RunConfig& config, std::size_t ps);
[[nodiscard]] std::size_t most_of_ps(std::size_t floats, std::size_t trainers) noexcept;

// Checks the way that a trainer has agreed on with a ps. Throws Failure if --transport requires
// another one.
void check_way_to(const Task& task, const std::string& ps, bool is_in_place);
// The ways to all ps, for the log.
[[nodiscard]] std::string describe_ways(std::size_t in_place, std::size_t ps);
// The way to a range's backup, once an update has stayed in memory.
[[nodiscard]] std::string describe_way_to_backup(std::size_t range);
// The way of snapshot shards from a ps.
[[nodiscard]] std::string describe_way_of_snapshots(const std::string& ps);

}  // namespace disttf::roles
