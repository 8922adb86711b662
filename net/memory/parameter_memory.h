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

// Memory of a ps that its peers map, as the ps itself uses it. (A simulation has another one.)
class InPlaceMemory {
 public:
  InPlaceMemory() = default;
  InPlaceMemory(const InPlaceMemory&) = delete;
  InPlaceMemory& operator=(const InPlaceMemory&) = delete;
  virtual ~InPlaceMemory() = default;

  // Begins on a page boundary.
  [[nodiscard]] virtual std::span<std::byte> parameters() const noexcept = 0;
  // Sets the ps's parked flag, which is set at first. A parked ps is sent frames, or woken. An
  // awake ps calls poll(), and once more between set_parked(true) and its sleep.
  virtual void set_parked(bool parked) noexcept = 0;
  // Clears the owner token of every connection: no further update of a primary is handed off.
  virtual void take_no_more() noexcept = 0;
  // Wakes each connection that waits for a frame and whose peer has left a request in its mailbox.
  // True: there is one, which reads the request when its event loop continues.
  virtual bool poll() noexcept = 0;
};

class ParameterMemory final : public InPlaceMemory {
 public:
  // For `bytes` bytes of parameters, a multiple of 64, with `slots` mailboxes; zeroed. Returns
  // nullptr where the system has no memory to share.
  [[nodiscard]] static std::shared_ptr<ParameterMemory> create(std::size_t bytes,
                                                               std::size_t slots);
  // The size of the memory: the most that a peer may map.
  [[nodiscard]] static std::size_t largest(std::size_t bytes, std::size_t slots) noexcept;

  // Sets the parked flag, so that no trainer leaves a request that is never read, and clears the
  // owner tokens, so that no primary counts an update as handed off.
  ~ParameterMemory() override;
  ParameterMemory(const ParameterMemory&) = delete;
  ParameterMemory& operator=(const ParameterMemory&) = delete;

  [[nodiscard]] std::span<std::byte> parameters() const noexcept override {
    return memory_->arena();
  }
  void set_parked(bool parked) noexcept override { memory_->set_parked(parked); }
  void take_no_more() noexcept override;
  bool poll() noexcept override;

 private:
  friend class InPlaceBodies;
  explicit ParameterMemory(std::unique_ptr<MailboxMemory> memory);

  const std::unique_ptr<MailboxMemory> memory_;
  // By mailbox: the connection that reads the requests of the peer that is answered there. nullptr:
  // none.
  std::vector<InPlaceBodies*> requests_;
};

// The conditions on which a ps accepts memory that a trainer, the primary of a range that it backs,
// or a chief offers.
struct InPlaceTerms {
  std::shared_ptr<InPlaceMemory> memory;  // its own; null: none, so frames are used
  // The mailbox for answers: each trainer has its own, and the primary another one. nullopt: for a
  // chief, which is answered by frames.
  std::optional<std::size_t> slot = {};
  // Bounds of the peer's memory in bytes: below `least` it is of no use, and above `most` it is not
  // mapped.
  std::size_t least = 0;
  std::size_t most = 0;
};

// How bodies travel over one connection between a trainer, or a primary, and a ps; and how the two
// agree on that.
class InPlaceBodies final : public MailboxEnd {
 public:
  // `ask_for_terms` is called only where a peer of this machine and this user offers memory. `wake`
  // is called by ParameterMemory::poll() where there is a request; it returns whether the request
  // will be read now.
  explicit InPlaceBodies(std::function<InPlaceTerms()> ask_for_terms,
                         std::function<bool()> wake = {})
      : ask_for_terms_(std::move(ask_for_terms)), wake_(std::move(wake)) {}
  ~InPlaceBodies() override;
  InPlaceBodies(const InPlaceBodies&) = delete;
  InPlaceBodies& operator=(const InPlaceBodies&) = delete;

  // Answers an offer: the body of SHARED, which is empty if the ps declines. In the first round the
  // ps hands its memory over to the peer, and in the second it maps the peer's. A new first round
  // ends an earlier agreement.
  [[nodiscard]] std::vector<std::byte> answer(const SharedOffer& offer);
  [[nodiscard]] bool has_agreed() const noexcept { return view_ != nullptr; }

  // Sends an answer whose body may lie in the ps's memory. The body stays unchanged as long as the
  // trainer may read it there.
  [[nodiscard]] Left leave(FrameHeader& header, std::span<const std::byte> body);
  // Sends an ACK. It goes through the mailbox if the last header that came did, too, and is that of
  // the update that it acknowledges: no more of these are unacknowledged than a mailbox has headers
  // (net/memory/body_ring.h).
  [[nodiscard]] Left leave_ack(const FrameHeader& header);

  [[nodiscard]] FrameKind negotiates_with() const noexcept override { return FrameKind::kShare; }
  [[nodiscard]] bool is_malformed(const FrameHeader& header) const noexcept override;
  [[nodiscard]] std::error_code negotiate(const FrameHeader& header,
                                          std::span<const std::byte> body,
                                          std::optional<Reply>& reply) override;
  [[nodiscard]] bool may_have_mailbox() const noexcept override { return has_agreed(); }
  [[nodiscard]] bool has_header() const noexcept override { return peer_.has_new(); }
  [[nodiscard]] std::error_code take_header(FrameHeader& header) noexcept override;
  [[nodiscard]] bool has_bodies() const noexcept override { return has_agreed(); }
  [[nodiscard]] std::optional<BodyInPlace> find(const FrameHeader& header) const override;
  void take_no_more() noexcept override;

 private:
  friend class ParameterMemory;
  // Between the two rounds: the ps has handed its memory over and waits for the peer's.
  struct Pending {
    Descriptor peer;
    SharedOffer theirs;
    SharedOffer own;
    std::size_t most = 0;
  };
  void begin(const SharedOffer& offer);
  void finish(const Pending& pending);
  void forget() noexcept;

  const std::function<InPlaceTerms()> ask_for_terms_;
  const std::function<bool()> wake_;
  std::optional<Pending> pending_;
  // Not owned: a ps that is given another configuration needs the memory for other parameters.
  std::weak_ptr<ParameterMemory> parameters_;
  std::optional<std::size_t> slot_;
  std::shared_ptr<const SharedView> view_;     // the peer's memory; null: they have not agreed
  PeerMailbox peer_;                           // there: the requests
  std::optional<std::uint64_t> taken_update_;  // the request_id of the last, if it was one
};

}  // namespace disttf::net
