// A trainer's view of one range of the parameter vector: whether its link is open, which state of
// the range it works on, and the numbers of its requests.
//
// That state is identified by the ps's process (incarnation), or the process in which the state
// began, and by the generation of the run. Once it is pinned, no other state is accepted.
//
// With --ps_replicas 2 each range has two hosts, and the link leads to the primary: opening it
// tries the last primary first, then the other host.
//
// A value. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "math/parameter_layout.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/messages.h"
#include "run/task.h"

namespace disttf::roles {

class RangeSession {
 public:
  // `task` must outlive it.
  RangeSession(const Task& task, std::size_t index);

  // --- its link

  enum class Fit : std::uint8_t {
    kOpen,
    kOtherState,  // open, but pinned to another state
    kElsewhere,   // not the primary: another host is, or none is yet
    kNoReplicas,  // it trains a run that has no replicas, and this one has
  };
  // A host has welcomed this trainer. `replicated`: whether the run is known to have replicas.
  [[nodiscard]] Fit welcomed(const net::Welcome& welcome, bool replicated);
  void close() noexcept { is_open_ = false; }
  [[nodiscard]] bool is_open() const noexcept { return is_open_; }
  // Returns the host that the link leads to, or that is dialed next.
  [[nodiscard]] net::TaskId host() const { return host_of_range(task_->cluster, index_, replica_); }
  [[nodiscard]] std::uint8_t replica() const noexcept { return replica_; }
  void try_other_host() noexcept { replica_ = replica_ == 0 ? 1 : 0; }

  // --- its state

  // The state that the ps has reported last.
  [[nodiscard]] net::ShardState state() const noexcept { return state_; }
  [[nodiscard]] net::Generation generation() const noexcept { return held_.generation; }
  void set_generation(net::Generation generation) noexcept { held_.generation = generation; }
  // The step of the parameters received last.
  [[nodiscard]] std::uint64_t step() const noexcept { return step_; }
  // From now on only the state that the ps is known to hold is accepted, however many others are
  // seen.
  void pin() noexcept { pinned_ = held_; }
  void unpin() noexcept { pinned_.reset(); }
  // Parameters are complete, as the answer to the push of this number; 0: to no push.
  void received(const net::Parameters& parameters, std::uint64_t push) noexcept;
  // The answer that HELLO names.
  [[nodiscard]] const net::LastAnswer& last_answer() const noexcept { return last_answer_; }

  // --- requests

  // Returns the number of the next request, for a caller that begins to send it before it is
  // complete.
  std::uint64_t reserve_request_id() noexcept;
  // Gives a request its number. Returns false if another request has been begun and will not be
  // completed; the link is to be closed.
  [[nodiscard]] bool number(net::FrameHeader& request) noexcept;
  // A gradient has been used.
  void acknowledge() noexcept { ++acknowledged_; }
  [[nodiscard]] std::uint64_t acknowledged() const noexcept { return acknowledged_; }

  // --- which one it is

  [[nodiscard]] std::size_t index() const noexcept { return index_; }
  // "ps 1 (10.0.0.7:2222)": its name in messages, whichever host it is on.
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  // The name of the host that the link leads to.
  [[nodiscard]] std::string host_name() const { return describe(task_->cluster, host()); }
  // Floats of the parameter vector; empty before the run's configuration is known.
  math::Range range = {};

 private:
  struct Held {
    std::uint64_t incarnation = 0;  // of the ps that its state came from
    net::Generation generation = 0;
    [[nodiscard]] bool operator==(const Held&) const = default;
  };

  const Task* task_;
  std::size_t index_;
  std::string name_;
  bool is_open_ = false;
  std::uint8_t replica_ = 0;
  net::ShardState state_ = net::ShardState::kEmpty;
  Held held_;                   // the state that the ps reported last
  std::optional<Held> pinned_;  // the only state accepted
  std::uint64_t step_ = 0;
  net::LastAnswer last_answer_;
  std::uint64_t next_request_id_ = 1;
  std::uint64_t reserved_id_ = 0;  // 0: none
  std::uint64_t acknowledged_ = 0;
};

}  // namespace disttf::roles
