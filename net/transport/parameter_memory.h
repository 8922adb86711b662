// Memory in which a ps has its parameters, for trainers on its machine to read answers there; and
// what a ps's connection does with it: gradients are read where the trainer has computed them
// (net/transport/gradient_memory.h), answers are left where they lie.
//
// Behind the parameters each trainer has a slot in which headers of its answers appear: see
// net/transport/answer_slot.h.
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/transport/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class ParameterMemory {
 public:
  // For so many bytes of parameters, a multiple of 64, and so many trainers; zeroed. nullptr where
  // the system has no memory to share.
  [[nodiscard]] static std::shared_ptr<ParameterMemory> create(std::size_t bytes,
                                                               std::size_t trainers);
  // The most that a ps has a use for.
  [[nodiscard]] static std::size_t largest(std::size_t bytes, std::size_t trainers) noexcept;

  // On a page boundary.
  [[nodiscard]] std::span<std::byte> parameters() const noexcept {
    return memory_->bytes().first(bytes_);
  }

 private:
  friend class InPlaceBodies;
  friend class PendingHandover;
  ParameterMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes);
  [[nodiscard]] std::size_t slot_of(std::size_t trainer) const noexcept;

  const std::unique_ptr<SharedMemory> memory_;
  const std::size_t bytes_;
};

// What a ps agrees to when a trainer, or the primary of a range that it backs, offers memory.
struct InPlaceTerms {
  std::shared_ptr<ParameterMemory> memory;  // its own; null: none, and frames will do
  std::size_t trainer = 0;                  // which of those that it was made for
  // Bytes of the trainer's: without so many it is of no use; more are not mapped.
  std::size_t least = 0;
  std::size_t most = 0;
};

class InPlaceBodies;

// A ps has handed its memory over to a trainer that has offered its own, and is to be handed that.
class PendingHandover {
 public:
  // nullptr: it declines, or nobody of this machine and this user is where the offer says. `answer`
  // is the body of SHARED either way.
  [[nodiscard]] static std::unique_ptr<PendingHandover> begin(const SharedOffer& offer,
                                                              const InPlaceTerms& terms,
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
  const std::size_t trainer_;
  const std::size_t most_;
};

// How bodies travel over one connection between a trainer and a ps that have agreed.
class InPlaceBodies {
 public:
  // The trainer's body that a header with kFlagInPlace is about; nothing where none lies there.
  [[nodiscard]] std::optional<BodyInPlace> find(const FrameHeader& header) const;

  enum class Left : std::uint8_t {
    kNot,      // it lies elsewhere: to be sent as ever
    kBody,     // it stays where it is; the header, which says so now, is to be sent
    kAnswer,   // the header was left, too: nothing is to be sent
    kAndRing,  // the same, and the trainer sleeps: any frame wakes it up
  };
  // An answer whose body may lie in the ps's memory, unchanged for as long as the trainer may read
  // it there.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> body);

 private:
  friend class PendingHandover;
  InPlaceBodies(std::shared_ptr<const SharedView> gradient,
                std::weak_ptr<ParameterMemory> parameters, std::size_t trainer,
                std::size_t sleep_word);

  const std::shared_ptr<const SharedView> gradient_;
  const std::weak_ptr<ParameterMemory> parameters_;
  const std::size_t trainer_;
  const std::size_t sleep_word_;  // where in the trainer's memory it lies; 0: nowhere
};

}  // namespace disttf::net
