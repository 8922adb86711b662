// What a trainer knows of one range of the parameter vector: whether its link is open, which state
// of the range it works on, and by which numbers it asks.
//
// That state has a name: the ps's process (incarnation), or the one where the state began, and the
// generation of the run. Once it is pinned, no other will do.
//
// With --ps_replicas 2 two ps host each range, and the link is to whichever of them is the primary:
// opening it asks the one that was last, then the other.
//
// A value. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "math/parameter_layout.h"
#include "net/wire/frame.h"
#include "net/wire/generation.h"
#include "net/wire/handshake.h"
#include "net/wire/messages.h"
#include "roles/run/task.h"

namespace disttf::roles {

class RangeSession {
 public:
  // `task` must outlive it.
  RangeSession(const Task& task, std::size_t index);

  // --- its link

  enum class Fit : std::uint8_t {
    kOpen,
    kOtherState,  // open, but it is pinned to another one
    kElsewhere,   // not the primary: another host is, or none is yet
    kNoReplicas,  // it trains a run that has no replicas, and this one has
  };
  // A host has welcomed this trainer. `replicated`: whether the run is known to have replicas.
  [[nodiscard]] Fit welcomed(const net::Welcome& welcome, bool replicated);
  void close() noexcept { is_open_ = false; }
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  // The host that the link is to, or that is dialed next.
  [[nodiscard]] net::TaskId host() const { return host_of_range(task_->cluster, index_, replica_); }
  [[nodiscard]] std::uint8_t replica() const noexcept { return replica_; }
  void try_other_host() noexcept { replica_ = replica_ == 0 ? 1 : 0; }

  // --- its state

  // What the ps last said of itself.
  [[nodiscard]] net::ShardState state() const noexcept { return state_; }
  [[nodiscard]] net::Generation generation() const noexcept { return held_.generation; }
  void set_generation(net::Generation generation) noexcept { held_.generation = generation; }
  // Of the parameters last received.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  // From now on only the state that the ps is known to hold will do, however many others are met
  // meanwhile.
  void pin() noexcept { pinned_ = held_; }
  void unpin() noexcept { pinned_.reset(); }
  // Parameters have come whole, as the answer to a push of this number; 0: to none.
  void received(const net::Parameters& parameters, std::uint64_t push) noexcept;
  // What HELLO names.
  [[nodiscard]] const net::LastAnswer& last_answer() const noexcept { return last_answer_; }

  // --- requests

  // The number of the next request, for whoever begins to send it before it is complete.
  std::uint64_t reserve_request_id() noexcept;
  // Gives a request its number. False: another one has been begun, and will not be ended; the link
  // is to be closed.
  [[nodiscard]] bool number(net::FrameHeader& request) noexcept;
  // A gradient has been used.
  void acknowledge() noexcept { ++acknowledged_; }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }

  // --- which one it is

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  // "ps 1 (10.0.0.7:2222)": how messages call it, whoever hosts it.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The same of the host that the link is to.
  [[nodiscard]] std::string host_name() const { return describe(task_->cluster, host()); }
  // Floats of the parameter vector; empty before the run is known.
  math::Range range = {};

 private:
  struct Held {
    std::uint64_t incarnation = 0;  // of the ps that its state has come from
    net::Generation generation = 0;
    [[nodiscard]] bool operator==(const Held&) const = default;
  };

  const Task* task_;
  std::size_t index_;
  std::string name_;
  bool is_open_ = false;
  std::uint8_t replica_ = 0;
  net::ShardState state_ = net::ShardState::kEmpty;
  Held held_;                   // what the ps last said that it holds
  std::optional<Held> pinned_;  // what alone will do
  std::uint64_t step_ = 0;
  net::LastAnswer last_answer_;
  std::uint64_t next_request_id_ = 1;
  std::uint64_t reserved_id_ = 0;  // 0: none
  std::uint64_t acknowledged_ = 0;
};

}  // namespace disttf::roles
