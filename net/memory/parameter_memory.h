// Shared memory that holds a ps's parameters and from which trainers on its machine read answers;
// and what a ps's connection does with it. The connection reads gradients where the trainer has
// computed them (net/tcp/gradient_memory.h) and leaves answers in place. Also memory for
// snapshot shards, which a chief reads: the chief takes the trainer's part, as a primary does, but
// has no mailbox.
//
// Behind the parameters lies a mailbox for each trainer, for the headers of its answers, and one
// for the primary of the range, for its acknowledgements. Behind the mailboxes lies the ps's parked
// flag: see net/memory/header_mailbox.h.
//
// Not thread-safe: the ps's single thread owns it.
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

#include "net/memory/header_mailbox.h"
#include "net/memory/shared_memory.h"
#include "net/wire/frame.h"

namespace disttf::net {

class InPlaceBodies;

class ParameterMemory {
 public:
  // For `bytes` bytes of parameters, a multiple of 64, with `slots` mailboxes; zeroed. Returns
  // nullptr where the system has no memory to share.
  [[nodiscard]] static std::shared_ptr<ParameterMemory> create(std::size_t bytes,
                                                               std::size_t slots);
  // The size of the memory: the most that a peer may map.
  [[nodiscard]] static std::size_t largest(std::size_t bytes, std::size_t slots) noexcept;

  // Sets the parked flag, so that no trainer leaves a request that is never read, and clears the
  // owner tokens, so that no primary counts an update as handed off.
  ~ParameterMemory();
  ParameterMemory(const ParameterMemory&) = delete;
  ParameterMemory& operator=(const ParameterMemory&) = delete;

  // Begins on a page boundary.
  [[nodiscard]] std::span<std::byte> parameters() const noexcept {
    return memory_->bytes().first(bytes_);
  }

  // Sets the ps's parked flag, which is set at first. A parked ps is sent frames, or woken. An
  // awake ps calls poll(), and once more between set_parked(true) and its sleep.
  void set_parked(bool parked) noexcept;
  // Clears the owner token of every connection: no further update of a primary is handed off.
  void take_no_more() noexcept;
  // Wakes each connection that waits for a frame and whose peer has left a request in its mailbox.
  // True: there is one, which reads the request when its event loop continues.
  bool poll() noexcept;

 private:
  friend class InPlaceBodies;
  friend class PendingHandover;
  ParameterMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes, std::size_t slots);
  [[nodiscard]] std::size_t place_of(std::size_t slot) const noexcept;
  [[nodiscard]] HeaderMailbox header_mailbox(std::size_t slot) const noexcept {
    return HeaderMailbox(memory_->bytes().subspan(place_of(slot), kHeaderMailboxBytes));
  }
  [[nodiscard]] std::size_t parked_flag() const noexcept { return place_of(requests_.size()); }

  const std::unique_ptr<SharedMemory> memory_;
  const std::size_t bytes_;
  // By mailbox: the connection that reads the requests of the peer that is answered there. nullptr:
  // none.
  std::vector<InPlaceBodies*> requests_;
};

// The conditions on which a ps accepts memory that a trainer, the primary of a range that it backs,
// or a chief offers.
struct InPlaceTerms {
  std::shared_ptr<ParameterMemory> memory;  // its own; null: none, so frames are used
  // The mailbox for answers: each trainer has its own, and the primary another one. nullopt: for a
  // chief, which is answered by frames.
  std::optional<std::size_t> slot = {};
  // Bounds of the peer's memory in bytes: below `least` it is of no use, and above `most` it is not
  // mapped.
  std::size_t least = 0;
  std::size_t most = 0;
};

// The state between the two rounds: the ps has handed its memory over to a trainer that offered
// memory, and waits for the trainer's.
class PendingHandover {
 public:
  // Returns nullptr if the ps declines, or if no process of this machine and this user is at the
  // offer's name; `ask_for_terms` is called only where one is. `answer` is the body of SHARED
  // either way.
  [[nodiscard]] static std::unique_ptr<PendingHandover> begin(
      const SharedOffer& offer, const std::function<InPlaceTerms()>& ask_for_terms,
      std::vector<std::byte>& answer);
  // Called when the trainer has sent that its memory is handed over. Returns nullptr if it is not,
  // or if it is not the memory of the offer. `answer` as above.
  [[nodiscard]] std::unique_ptr<InPlaceBodies> finish(std::vector<std::byte>& answer) const;

 private:
  PendingHandover(Descriptor peer, const SharedOffer& theirs, const SharedOffer& own,
                  const InPlaceTerms& terms);

  const Descriptor peer_;
  const SharedOffer theirs_;
  const SharedOffer own_;
  // Not owned: a ps that is given another configuration needs the memory for other parameters.
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

  // Returns the peer's body for a header with kFlagInPlace; nullopt if the header's offset and size
  // exceed the memory.
  [[nodiscard]] std::optional<BodyInPlace> find(const FrameHeader& header) const;

  // Sends an answer whose body may lie in the ps's memory. The body stays unchanged as long as the
  // trainer may read it there.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> body);
  // Sends an ACK. It goes through the mailbox if the last header that came did, too, and is that of
  // the update that it acknowledges: no more of these are unacknowledged than a mailbox has headers
  // (net/memory/body_ring.h).
  [[nodiscard]] Left leave_ack(const FrameHeader& header);

  // Whether the peer leaves requests in a mailbox.
  [[nodiscard]] bool takes_requests() const noexcept { return requests_at_ != 0; }
  // Whether there is a request. It precedes anything that has arrived over the connection since.
  // (The end of a connection drops a trainer's requests; those of a primary are taken.)
  [[nodiscard]] bool has_request() const noexcept;
  // As HeaderMailboxReader::take(), and WireError::kUnexpected for another kind of frame. REQUIRES:
  // has_request().
  [[nodiscard]] std::error_code take_request(FrameHeader& header) noexcept;
  // Clears the owner token: what the peer leaves from here on is not handed off (header_mailbox.h).
  // has_request() still finds what it has left before.
  void take_no_more() noexcept;
  // `hook` is called by ParameterMemory::poll() where there is a request. It returns whether the
  // request will be read now.
  void on_request(std::function<bool()> hook) { on_request_ = std::move(hook); }

 private:
  friend class ParameterMemory;
  friend class PendingHandover;
  // `token`: this end's owner token for the agreement.
  InPlaceBodies(std::shared_ptr<const SharedView> gradient,
                const std::shared_ptr<ParameterMemory>& parameters, std::optional<std::size_t> slot,
                const SharedOffer& theirs, std::uint64_t token);
  // REQUIRES: takes_requests().
  [[nodiscard]] HeaderMailboxView requests() const noexcept {
    return HeaderMailboxView(gradient_->bytes().subspan(requests_at_, kHeaderMailboxBytes));
  }

  // REQUIRES: there is a parked flag. `memory`: the ps's.
  [[nodiscard]] Left leave_header(const ParameterMemory& memory, const FrameHeader& header) const;

  const std::shared_ptr<const SharedView> gradient_;
  const std::weak_ptr<ParameterMemory> parameters_;
  const std::optional<std::size_t> slot_;
  // Offsets in the peer's memory; 0: there is none.
  const std::size_t parked_flag_;
  std::size_t requests_at_;
  HeaderMailboxReader taken_;                  // position in the requests
  std::optional<std::uint64_t> taken_update_;  // the request_id of the last, if it was one
  std::function<bool()> on_request_;
};

}  // namespace disttf::net
