// A trainer and the other trainers of its host, where their addresses say that they are a host
// group (net/wire/cluster.h): one of them, the leader, adds their gradients up and pushes the sum
// to the ps that are on other hosts; the others read the parameters where it leaves them. So a host
// is sent, and sends, as much as one trainer, however many it has.
//
// The sum is the same bits as the ps' own of these gradients, so nobody need agree on this with
// anybody of another host, or do it at every step: whenever somebody of the group is missing, late,
// or has lost a ps, each pushes its own gradient. It is done where every gradient counts, a ps does
// not judge how long each is (--max_gradient_norm), and tensors cross as float32; --transport tcp
// leaves it out.
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
#include "net/transport/host_group.h"
#include "net/transport/interrupt.h"
#include "net/wire/frame.h"
#include "roles/process/stop_signal.h"
#include "roles/run/task.h"
#include "roles/trainer/core/group_way.h"
#include "roles/trainer/shell/ps_link.h"

namespace disttf::roles {

class HostSum {
 public:
  using Ranges = GroupWay::Ranges;

  // `task` and `stop` must outlive it.
  HostSum(const Task& task, const StopSignal& stop);

  // Of the run, known from its configuration: floats of the vector.
  void prepare(std::size_t size, math::Isa isa);

  // There are others that this trainer may push one sum with.
  [[nodiscard]] bool is_possible() const noexcept { return size_ != 0; }
  // All of them are here: the next push is likely to be one, so none is begun ahead.
  [[nodiscard]] bool is_likely();

  // Over the link to ps 0: the leader says where it is found, a member asks and goes there.
  // `remote`: the ps that do not read gradients where they lie. REQUIRES: nothing is asked of that
  // ps.
  [[nodiscard]] std::error_code meet(PsLink& link, Ranges remote);
  // Another gradient is about to be computed, and the group has not been met, or been left: now and
  // then that is to be tried again.
  [[nodiscard]] bool is_to_meet() noexcept;

  // How the gradient of the state that the push is of reaches the ps in `remote`. Waits for the
  // others, until wait_until() at most; not where that has been decided. `has_begun`: it is being
  // sent.
  void choose(const net::FrameHeader& push, std::span<const float> gradient, Ranges remote,
              bool has_begun);
  [[nodiscard]] net::Deadline wait_until() const {
    return net::Clock::now() + task_.timeouts.silence;
  }

  // What has been chosen, as GroupWay has it.
  [[nodiscard]] const GroupWay& way() const noexcept { return way_; }
  // Leader: of the last gradients that were added up. [size]
  [[nodiscard]] std::span<const float> sum() const noexcept { return sum_; }

  // Leader: parameters have come, in answer to a push: of so many floats from the vector's
  // beginning.
  void publish(std::size_t range, const net::FrameHeader& header, std::size_t offset,
               std::span<const float> parameters);
  // Member: the header has come of the answer to a push that had no body. Waits for the parameters,
  // until wait_until() at most.
  [[nodiscard]] std::error_code take(std::size_t range, const net::FrameHeader& header,
                                     std::size_t offset, std::span<float> into);

  // Member: becomes readable when the leader has said something, or has gone; -1: it is waited for
  // by nobody.
  [[nodiscard]] int fd() const noexcept;
  // Leader, while a push of the sum is not answered: members hear each second that it runs.
  void beat(net::Deadline now);
  // Member: the leader has gone, or has not been heard for as long as Timeouts::silence, and these
  // ps have been told that the gradient is in a sum which nobody may push any more. From now on it
  // is pushed by itself.
  [[nodiscard]] Ranges lost(net::Deadline now);

  // All ps have answered the push.
  void answered() noexcept { awaits_leader_ = false; }
  // Something else is done than to push the gradients of one state after the other: the others do
  // not count on this trainer, until it meets them anew.
  void leave() noexcept;

 private:
  [[nodiscard]] bool is_met() const noexcept;
  [[nodiscard]] Ranges gather(const net::StateOf& of, std::span<const float> gradient,
                              Ranges remote);
  [[nodiscard]] Ranges offer(const net::StateOf& of, std::span<const float> gradient);
  // False: what has been added is not to be pushed.
  [[nodiscard]] bool add_up(std::span<const float> gradient);

  const Task& task_;
  const StopSignal& stop_;
  GroupWay way_;
  std::size_t size_ = 0;  // floats of the vector; 0: there is nobody to add anything with
  math::Isa isa_ = math::Isa::kGeneric;
  net::StateOf pushed_;
  bool was_summed_ = false;  // once: it is told of

  std::unique_ptr<net::GroupLeader> leader_;  // nullptr also where this trainer is a member
  std::optional<math::TreeSum> tree_;
  std::span<const float> sum_;
  net::Deadline beat_at_{};

  std::unique_ptr<net::GroupMember> member_;
  bool awaits_leader_ = false;    // a push had no body
  net::Deadline heard_{};         // then, or later
  std::uint64_t meet_in_ = 1;     // so many gradients, again
  std::uint64_t meet_after_ = 1;  // the next time
};

}  // namespace disttf::roles
