// The backup's side of a range. It reads what its primary sends into the shard that is the copy:
// the whole state (FILL), then each update (UPDATE). It also tracks how much of the state the copy
// has.
//
//  nothing -> filled: has the state at one step, and all updates that follow it on the connection
//          -> complete: has every acknowledged update, and may become the primary
//
// For each frame, call fill() or update() when its header has arrived, then part() each time that a
// part of its body has been read to where the previous outcome asked. Input is validated before it
// is applied: a frame of another run, another range or another state, or one that is not the next
// step, is refused. The body of a FILL has three parts (its head, the trainers, the tensors), that
// of an UPDATE two (its head, the sum of gradients). The last part is read directly into the shard.
// An UPDATE that lies in shared memory is read there. Such an update may carry the state that
// precedes it, and its application may be deferred (Shard::take_update()).
//
// One instance reads the connection of one primary, for as long as that host is the primary. Not
// thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/replication.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

class BackupReceiver {
 public:
  // Read the next part of the body into these buffers, in this order, then call part().
  struct Read {
    std::span<const std::span<std::byte>> places;
  };
  // The whole state has arrived.
  struct Filled {
    std::uint64_t step = 0;
    net::Generation generation = 0;
    std::uint64_t lineage = 0;
    std::vector<std::uint64_t> incarnations;  // async: the newest that has pushed, by rank, or 0
  };
  // The update was applied or deferred; either way this host has it.
  struct Updated {
    std::size_t trainer = 0;        // async: whose gradient it was
    std::uint64_t incarnation = 0;  // of that trainer's process; sync: 0
  };
  // The frame is invalid for a backup in this state. The connection is to be closed.
  struct Refused {
    std::string why;
  };
  using Outcome = std::variant<Read, Filled, Updated, Refused>;

  // REQUIRES, of both: no part of another frame is outstanding. `shard`: the copy; kept until the
  // frame is complete.
  [[nodiscard]] Outcome fill(const net::FrameHeader& header, std::shared_ptr<Shard> shard);
  // `in_place`: where the body lies, if it need not be read; the outcome is then never Read. The
  // body must not change until the update is acknowledged. The newest body that carries a state
  // must not change until the next one that carries a state has arrived.
  [[nodiscard]] Outcome update(const net::FrameHeader& header, std::shared_ptr<Shard> shard,
                               const net::BodyInPlace& in_place);
  [[nodiscard]] Outcome part();
  // COMPLETE: the primary has sent everything of `generation`. Returns false if this copy is not of
  // that generation.
  [[nodiscard]] bool complete(net::Generation generation) noexcept;
  // CONCLUDE: the run ends with the state that this copy has. Returns false if the generation or
  // the step differs, or if there is no state. `shard`: the copy.
  [[nodiscard]] bool conclude(const net::Conclude& conclude, Shard& shard);

  [[nodiscard]] bool is_filled() const noexcept { return state_ != State::kNothing; }
  [[nodiscard]] bool is_complete() const noexcept { return state_ == State::kComplete; }

 private:
  enum class State : std::uint8_t { kNothing, kFilled, kComplete };
  enum class Part : std::uint8_t { kFillHead, kFillTrainers, kTensors, kUpdateHead, kGradient };

  Read into_bytes(Part part, std::size_t size);
  Outcome fill_head();
  Outcome fill_trainers();
  Outcome filled();
  // Returns Refused if the update does not follow the last one, else nullopt.
  std::optional<Refused> read_head(std::span<const std::byte> head);
  Outcome update_head();
  Outcome updated(std::span<const float> gradient, std::span<const float> state = {},
                  std::shared_ptr<const void> memory = {});

  State state_ = State::kNothing;
  net::Generation generation_ = 0;  // of the state that was filled in
  // The frame that is being read.
  Part part_ = Part::kFillHead;
  std::shared_ptr<Shard> shard_;
  std::vector<std::byte> bytes_;  // a part that is not a tensor
  std::vector<std::span<std::byte>> places_;
  net::FrameHeader header_;
  net::FillHead fill_;
  net::UpdateHead update_;
  ShardIdentity identity_;
  bool with_previous_ = false;  // the state includes the parameters of the previous step
};

}  // namespace disttf::roles
