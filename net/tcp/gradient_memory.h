// Shared memory in which a trainer computes gradients and from which ps on its machine read them;
// and the channels that send neither these gradients nor the parameters over the socket.
//
// A trainer has one such memory for its channels to all ps, with room for one or more gradients of
// the whole parameter vector. Over each channel it offers the memory (Channel::agree()) and is
// offered the ps's: net/memory/parameter_memory.h.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "net/memory/header_mailbox.h"
#include "net/memory/shared_memory.h"
#include "net/tcp/channel.h"

namespace disttf::net {

class GradientMemory {
 public:
  struct Shape {
    std::size_t bytes = 0;     // of a gradient
    std::size_t count = 1;     // of gradients
    std::size_t channels = 1;  // number of mailboxes for carry()
  };
  // Zeroed. Returns nullptr where the system has no memory to share.
  [[nodiscard]] static std::unique_ptr<GradientMemory> create(const Shape& shape);
  // The size of the memory, in whole pages: the most that a ps may map.
  [[nodiscard]] static std::size_t largest(const Shape& shape) noexcept;

  // REQUIRES: number < count(). The result begins on a page boundary.
  [[nodiscard]] std::span<std::byte> gradient(std::size_t number = 0) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return shape_.count; }
  // Whether a body lies in this memory: a ps that has agreed reads it there.
  [[nodiscard]] bool holds(std::span<const std::byte> body) const noexcept {
    return lies_in(body, memory_->arena());
  }
  // Replaces the memory by a new one. Processes that were handed the old memory keep it unchanged.
  // All channels have to agree again; until then they send their bodies as frames. False: the
  // system has no more memory, and nothing has changed.
  [[nodiscard]] bool renew();
  // Wraps a channel that has not agreed yet; it must be destroyed before the memory. `number`:
  // which of Shape::channels mailboxes it uses; at most one open channel per number. Over it,
  // pushes that lie in the memory and pulls go through the mailbox while the ps is awake. nullopt:
  // all are frames.
  [[nodiscard]] std::unique_ptr<Channel> carry(std::unique_ptr<Channel> channel,
                                               std::optional<std::size_t> number);
  // Sets the trainer's parked flag: a ps that answers a parked trainer also makes the channel's
  // fd() ready. See Poller; the event that it polls for is Channel::has_frame().
  void set_parked(bool parked) noexcept { memory_->set_parked(parked); }

 private:
  friend class InPlaceChannel;
  GradientMemory(std::unique_ptr<MailboxMemory> memory, const Shape& shape)
      : memory_(std::move(memory)), shape_(shape) {}

  std::unique_ptr<MailboxMemory> memory_;  // a mailbox for the requests of each channel
  std::uint64_t renewals_ = 0;
  // renew() has failed: processes that were handed this memory earlier may still poll its
  // mailboxes, so no request is left there.
  bool is_kept_ = false;
  const Shape shape_;
};

}  // namespace disttf::net
