// The backup's side of a range: reads what its primary sends, the whole state (FILL) and each
// update since (UPDATE), into the shard that is the copy; and knows what the copy is good for.
//
//   nothing -> filled: has the state of one moment, and all updates that follow it on the
//   connection
//           -> complete: has all that was ever acknowledged, and may take the primary's place
//
// A frame goes through fill() or update() when its header has come, then part() each time a part of
// its body lies where the outcome before has said. Nothing of it is believed: what is no frame of
// the shard's run, of its range, of the state that it was filled with, or no next step, is refused
// before it is applied. The body is three parts of a FILL (its head, the trainers, the tensors),
// two of an UPDATE (its head, the sum of gradients); the last one lands in the shard itself. That
// of an UPDATE which lies in memory is read there, and may have a state behind it; such an update
// need not be made at once (Shard::take_update()).
//
// One of these reads one primary's connection, for as long as that is the primary. Not thread-safe:
// the ps's one thread owns it.
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
#include "net/wire/log_messages.h"
#include "net/wire/replication.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

class BackupReceiver {
 public:
  // The next part of the body goes there, in this order; part() when it has.
  struct Read {
    std::span<const std::span<std::byte>> places;
  };
  // The state has come whole.
  struct Filled {
    std::uint64_t step = 0;
    net::Generation generation = 0;
    std::uint64_t lineage = 0;
    std::vector<std::uint64_t> incarnations;  // async: the newest that has pushed, by rank, or 0
  };
  // The update has been made, or put off: it is here.
  struct Updated {
    std::size_t trainer = 0;        // async: whose gradient it was
    std::uint64_t incarnation = 0;  // of that trainer's process; sync: 0
  };
  // What has come is not what a backup takes now: the connection is of no use.
  struct Refused {
    std::string why;
  };
  using Outcome = std::variant<Read, Filled, Updated, Refused>;

  // REQUIRES of both: no part of another frame is awaited. `shard`: the copy, kept until the frame
  // has come whole.
  [[nodiscard]] Outcome fill(const net::FrameHeader& header, std::shared_ptr<Shard> shard);
  // `in_place`: where the body lies, if it need not be read; then the outcome is no Read. There it
  // stays as it is until the update is acknowledged; and where updates with a state have come,
  // until the next one of these is.
  [[nodiscard]] Outcome update(const net::FrameHeader& header, std::shared_ptr<Shard> shard,
                               const net::BodyInPlace& in_place);
  [[nodiscard]] Outcome part();
  // The primary says that all is here (COMPLETE). False: it is not, of that generation.
  [[nodiscard]] bool complete(net::Generation generation) noexcept;
  // The primary says that the run ends with what is here (CONCLUDE). False: it is of another
  // generation or step, or there is nothing here. `shard`: the copy.
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
  // Refused: no update that follows the last one. nullopt: it does.
  std::optional<Refused> read_head(std::span<const std::byte> head);
  Outcome update_head();
  Outcome updated(std::span<const float> gradient, std::span<const float> state = {},
                  std::shared_ptr<const void> memory = {});

  State state_ = State::kNothing;
  net::Generation generation_ = 0;  // of the state that it was filled with
  // The frame that is being read.
  Part part_ = Part::kFillHead;
  std::shared_ptr<Shard> shard_;
  std::vector<std::byte> bytes_;  // a part that is no tensor
  std::vector<std::span<std::byte>> places_;
  net::FrameHeader header_;
  net::FillHead fill_;
  net::UpdateHead update_;
  ShardIdentity identity_;
  bool with_previous_ = false;  // the parameters of the step before are in the state
};

}  // namespace disttf::roles
