// Memory in which a trainer computes gradients, for ps on its machine to read them there; and
// channels over which these need not be sent therefore, nor parameters received.
//
// A trainer has one, of the whole vector, for its channels to all ps. Over each of them it offers
// the memory (Channel::agree()), and is offered the ps's: net/transport/parameter_memory.h.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/transport/channel.h"
#include "net/transport/shared_memory.h"

namespace disttf::net {

class GradientMemory {
 public:
  // For gradients of so many bytes; zeroed. nullptr where the system has no memory to share.
  [[nodiscard]] static std::unique_ptr<GradientMemory> create(std::size_t bytes);
  // The most that a trainer has a use for.
  [[nodiscard]] static std::size_t largest(std::size_t bytes) noexcept;

  // On a page boundary.
  [[nodiscard]] std::span<std::byte> gradient() const noexcept {
    return memory_->bytes().first(bytes_);
  }
  // The channel, which has yet to agree; it must go before the memory.
  [[nodiscard]] std::unique_ptr<Channel> carry(std::unique_ptr<Channel> channel);
  // Whether the trainer sleeps: then a ps that has answered makes a channel's fd() ready, too. See
  // Lookout: Channel::has_frame() is what it sees.
  void set_asleep(bool asleep) noexcept;

 private:
  friend class InPlaceChannel;
  GradientMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes);
  // Where in the memory the word lies that says so.
  [[nodiscard]] std::size_t sleep_word() const noexcept;

  const std::unique_ptr<SharedMemory> memory_;
  const std::size_t bytes_;
};

}  // namespace disttf::net
