// Memory in which a ps has its parameters, for trainers on its machine to read answers there; and
// what a ps's connection does with it: gradients are read where the trainer has computed them
// (net/transport/gradient_memory.h), answers are left where they lie. And memory for cuts, which a
// chief reads: it takes a trainer's place, as a primary does, but has no slot.
//
// Behind the parameters each trainer has a slot in which headers of its answers appear, and so has
// the primary of the range, for those of its acknowledgements; behind all of them lies the word
// that says whether the ps sleeps: see net/transport/header_slot.h.
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "net/transport/header_slot.h"
#include "net/transport/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class InPlaceBodies;

class ParameterMemory {
 public:
  // For so many bytes of parameters, a multiple of 64, with so many slots; zeroed. nullptr where
  // the system has no memory to share.
  [[nodiscard]] static std::shared_ptr<ParameterMemory> create(std::size_t bytes,
                                                               std::size_t slots);
  // The most that a ps has a use for.
  [[nodiscard]] static std::size_t largest(std::size_t bytes, std::size_t slots) noexcept;

  // Says that the ps sleeps, so that no trainer leaves a request where nobody looks any more, and
  // that no primary's updates are taken.
  ~ParameterMemory();
  ParameterMemory(const ParameterMemory&) = delete;
  ParameterMemory& operator=(const ParameterMemory&) = delete;

  // On a page boundary.
  [[nodiscard]] std::span<std::byte> parameters() const noexcept {
    return memory_->bytes().first(bytes_);
  }

  // Whether the ps sleeps, as it does at first: then it is sent frames, or rung. One that is awake
  // look()s, and does so once more between set_asleep(true) and its sleep.
  void set_asleep(bool asleep) noexcept;
  // No primary's updates are taken any more, whichever connection they are of.
  void take_no_more() noexcept;
  // Wakes each connection that waits for a frame, and whose peer has left a request in memory.
  // True: there is one, which will read it when its event loop goes on.
  bool look() noexcept;

 private:
  friend class InPlaceBodies;
  friend class PendingHandover;
  ParameterMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes, std::size_t slots);
  [[nodiscard]] std::size_t place_of(std::size_t slot) const noexcept;
  [[nodiscard]] HeaderSlot header_slot(std::size_t slot) const noexcept {
    return HeaderSlot(memory_->bytes().subspan(place_of(slot), kHeaderSlotBytes));
  }
  [[nodiscard]] std::size_t sleep_word() const noexcept { return place_of(requests_.size()); }

  const std::unique_ptr<SharedMemory> memory_;
  const std::size_t bytes_;
  // By slot: who looks for the requests of the one that is answered there. nullptr: nobody.
  std::vector<InPlaceBodies*> requests_;
};

// What a ps agrees to when a trainer, the primary of a range that it backs, or a chief offers
// memory.
struct InPlaceTerms {
  std::shared_ptr<ParameterMemory> memory;  // its own; null: none, and frames will do
  // Where in it answers are left: each trainer has a slot of its own, and the primary another one.
  // nullopt: a chief has none, and is answered by frames.
  std::optional<std::size_t> slot = {};
  // Bytes of the trainer's: without so many it is of no use; more are not mapped.
  std::size_t least = 0;
  std::size_t most = 0;
};

// A ps has handed its memory over to a trainer that has offered its own, and is to be handed that.
class PendingHandover {
 public:
  // nullptr: it declines, or nobody of this machine and this user is where the offer says; only
  // where somebody is, `ask_for_terms` is called. `answer` is the body of SHARED either way.
  [[nodiscard]] static std::unique_ptr<PendingHandover> begin(
      const SharedOffer& offer, const std::function<InPlaceTerms()>& ask_for_terms,
      std::vector<std::byte>& answer);
  // Once the trainer has said that its memory is handed over. nullptr: it is not, or is other
  // memory than the offer said. `answer` as above.
  [[nodiscard]] std::unique_ptr<InPlaceBodies> finish(std::vector<std::byte>& answer) const;

 private:
  PendingHandover(Descriptor peer, const SharedOffer& theirs, const SharedOffer& own,
                  const InPlaceTerms& terms);

  const Descriptor peer_;
  const SharedOffer theirs_;
  const SharedOffer own_;
  // Not kept: a ps that is given another configuration needs the memory for other parameters.
  const std::weak_ptr<ParameterMemory> parameters_;
  const std::optional<std::size_t> slot_;
  const std::size_t most_;
};

// How bodies travel over one connection between a trainer, or a primary, and a ps that have agreed.
class InPlaceBodies {
 public:
  ~InPlaceBodies();
  InPlaceBodies(const InPlaceBodies&) = delete;
  InPlaceBodies& operator=(const InPlaceBodies&) = delete;

  // The peer's body that a header with kFlagInPlace is about; nothing where none lies there.
  [[nodiscard]] std::optional<BodyInPlace> find(const FrameHeader& header) const;

  // An answer whose body may lie in the ps's memory, unchanged for as long as the trainer may read
  // it there.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> body);
  // An ACK. It is left if the last header that came was left, too, and is that of the update that
  // it acknowledges: of these no more are on their way than a slot has headers
  // (net/transport/body_slots.h).
  [[nodiscard]] Left leave_ack(const FrameHeader& header);

  // Whether the peer leaves requests in memory.
  [[nodiscard]] bool takes_requests() const noexcept { return requests_at_ != 0; }
  // Whether there is one. It came before whatever came over the connection since. (An end of that
  // drops a trainer's; a primary's are taken.)
  [[nodiscard]] bool has_request() const noexcept;
  // As HeaderSlotReader::take(), and WireError::kUnexpected of another frame. REQUIRES:
  // has_request().
  [[nodiscard]] std::error_code take_request(FrameHeader& header) noexcept;
  // What the peer leaves from here on it cannot take for taken: see header_slot.h. What it has left
  // before has_request() still finds.
  void take_no_more() noexcept;
  // Called by ParameterMemory::look() where there is one. Returns whether it will be taken now.
  void on_request(std::function<bool()> hook) { on_request_ = std::move(hook); }

 private:
  friend class ParameterMemory;
  friend class PendingHandover;
  // `token`: this end's, of the agreement.
  InPlaceBodies(std::shared_ptr<const SharedView> gradient,
                const std::shared_ptr<ParameterMemory>& parameters, std::optional<std::size_t> slot,
                const SharedOffer& theirs, std::uint64_t token);
  // REQUIRES: takes_requests().
  [[nodiscard]] HeaderSlotView requests() const noexcept {
    return HeaderSlotView(gradient_->bytes().subspan(requests_at_, kHeaderSlotBytes));
  }

  // REQUIRES: there is a sleep word. `memory`: the ps's.
  [[nodiscard]] Left leave_header(const ParameterMemory& memory, const FrameHeader& header) const;

  const std::shared_ptr<const SharedView> gradient_;
  const std::weak_ptr<ParameterMemory> parameters_;
  const std::optional<std::size_t> slot_;
  // Where in the peer's memory they lie; 0: nowhere.
  const std::size_t sleep_word_;
  std::size_t requests_at_;
  HeaderSlotReader taken_;                     // of the requests
  std::optional<std::uint64_t> taken_update_;  // the request_id of the last, if it was one
  std::function<bool()> on_request_;
};

}  // namespace disttf::net
