// A trainer and the other trainers of its host, if their addresses make them a host group
// (net/wire/cluster.h). One of them, the leader, adds their gradients up and pushes the sum to the
// ps on other hosts; the others read the parameters where the leader leaves them. So a host sends
// and receives as much as one trainer, however many it has.
//
// The sum is bit-identical to the ps's own sum of these gradients. So no agreement with other hosts
// is needed, nor the same choice in every step: whenever a trainer of the group is missing, late,
// or has lost a ps, each pushes its own gradient. Group sums are used if every gradient counts, the
// ps do not check norms (--max_gradient_norm), and tensors are sent as float32; --transport tcp
// turns them off.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

#include "math/kernels.h"
#include "math/tree_sum.h"
#include "net/memory/host_group.h"
#include "net/waiting/interrupt.h"
#include "net/wire/frame.h"
#include "roles/trainer/core/group_way.h"
#include "roles/trainer/shell/ps_link.h"
#include "run/process/stop_signal.h"
#include "run/task.h"

namespace disttf::roles {

class HostSum {
 public:
  using Ranges = GroupWay::Ranges;

  // `task` and `stop` must outlive it.
  HostSum(const Task& task, const StopSignal& stop);

  // The run's configuration: `size` floats of the parameter vector.
  void prepare(std::size_t size, math::Isa isa);

  // Returns whether there are other trainers that this one may push a sum with.
  [[nodiscard]] bool is_possible() const noexcept { return size_ != 0; }
  // Returns whether all of them are connected: the next push is then likely to be a sum, and none
  // is begun ahead of time.
  [[nodiscard]] bool is_likely();

  // Peer discovery over the link to ps 0: the leader reports where it is found, and a member asks
  // for that and connects. `remote`: the ps that do not read gradients in shared memory. REQUIRES:
  // no request to that ps is outstanding.
  [[nodiscard]] std::error_code discover_peers(PsLink& link, Ranges remote);
  // To be called before each gradient. Returns whether discover_peers() is to be tried again, after
  // the group was not found or was left: now and then.
  [[nodiscard]] bool is_discovery_due() noexcept;

  // Decides how the gradient of this push's state reaches the ps in `remote`. Waits for the other
  // trainers, until wait_until() at most, unless it has been decided. `has_begun`: the push is
  // being sent.
  void choose(const net::FrameHeader& push, std::span<const float> gradient, Ranges remote,
              bool has_begun);
  [[nodiscard]] net::Deadline wait_until() const {
    return net::Clock::now() + task_.timeouts.heartbeat_timeout;
  }

  // The decision, see GroupWay.
  [[nodiscard]] const GroupWay& way() const noexcept { return way_; }
  // Leader: the sum of the gradients added up last. [size]
  [[nodiscard]] std::span<const float> sum() const noexcept { return sum_; }

  // Leader: parameters have arrived in answer to a push. `offset`: their first float in the vector.
  void publish(std::size_t range, const net::FrameHeader& header, std::size_t offset,
               std::span<const float> parameters);
  // Member: the header of the answer to a push without a body has arrived. Waits for the
  // parameters, until wait_until() at most.
  [[nodiscard]] std::error_code take(std::size_t range, const net::FrameHeader& header,
                                     std::size_t offset, std::span<float> into);

  // Member: becomes readable when the leader has sent something, or has gone; -1: nothing is
  // awaited from it.
  [[nodiscard]] int fd() const noexcept;
  // Leader, while a push of the sum is unanswered: sends the members a heartbeat each second.
  void beat(net::Deadline now);
  // Member: if the leader has gone, or its heartbeat timeout has expired, returns the ps that were
  // told that the gradient is in a sum, which will not be pushed any more. The gradient is pushed
  // by itself from now on.
  [[nodiscard]] Ranges lost(net::Deadline now);

  // All ps have answered the push.
  void answered() noexcept { awaits_leader_ = false; }
  // This trainer stops pushing the gradients of consecutive states: the others do not count on it
  // until it meets them again.
  void leave() noexcept;

 private:
  [[nodiscard]] bool is_met() const noexcept;
  [[nodiscard]] Ranges gather(const net::StateOf& of, std::span<const float> gradient,
                              Ranges remote);
  [[nodiscard]] Ranges offer(const net::StateOf& of, std::span<const float> gradient);
  // Adds the gradients up. Returns false if the sum must not be pushed.
  [[nodiscard]] bool add_up(std::span<const float> gradient);

  const Task& task_;
  const StopSignal& stop_;
  GroupWay way_;
  std::size_t size_ = 0;  // floats of the vector; 0: there is no group
  math::Isa isa_ = math::Isa::kGeneric;
  net::StateOf pushed_;
  bool was_summed_ = false;  // for one log line

  std::unique_ptr<net::GroupLeader> leader_;  // nullptr also if this trainer is a member
  std::optional<math::TreeSum> tree_;
  std::span<const float> sum_;
  net::Deadline beat_at_{};

  std::unique_ptr<net::GroupMember> member_;
  bool awaits_leader_ = false;        // a push had no body
  net::Deadline heard_{};             // since then, or later
  std::uint64_t discover_in_ = 1;     // the number of gradients until the next attempt
  std::uint64_t discover_after_ = 1;  // and until the one after that
};

}  // namespace disttf::roles
