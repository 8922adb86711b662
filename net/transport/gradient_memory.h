// Memory in which a trainer computes gradients, for ps on its machine to read them there; and
// channels over which these need not be sent therefore, nor parameters received.
//
// A trainer has one, of one or more gradients of the whole vector, for its channels to all ps. Over
// each of them it offers the memory (Channel::agree()), and is offered the ps's:
// net/transport/parameter_memory.h.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "net/transport/channel.h"
#include "net/transport/shared_memory.h"

namespace disttf::net {

class GradientMemory {
 public:
  struct Shape {
    std::size_t bytes = 0;     // of a gradient
    std::size_t count = 1;     // of gradients
    std::size_t channels = 1;  // that carry() may be told of
  };
  // Zeroed. nullptr where the system has no memory to share.
  [[nodiscard]] static std::unique_ptr<GradientMemory> create(const Shape& shape);
  // The most that a trainer has a use for.
  [[nodiscard]] static std::size_t largest(const Shape& shape) noexcept;

  // REQUIRES: number < count(). On a page boundary.
  [[nodiscard]] std::span<std::byte> gradient(std::size_t number = 0) const noexcept;
  [[nodiscard]] std::size_t count() const noexcept { return shape_.count; }
  // Whether a body lies in it: a ps that has agreed is not sent that.
  [[nodiscard]] bool holds(std::span<const std::byte> body) const noexcept {
    return lies_in(body, memory_->bytes().first(sleep_word()));
  }
  // Other memory takes its place; whoever has been handed the old one keeps it, as it is. All
  // channels are to agree anew: until then they send what lies in it. False: the system has no
  // more, and nothing has changed.
  [[nodiscard]] bool renew();
  // The channel, which has yet to agree; it must go before the memory. `number`: which of
  // Shape::channels it is; one at a time is open of each. Over it pushes that lie in the memory,
  // and pulls, need no frame while the ps is awake. nullopt: all are frames.
  [[nodiscard]] std::unique_ptr<Channel> carry(std::unique_ptr<Channel> channel,
                                               std::optional<std::size_t> number);
  // Whether the trainer sleeps: then a ps that has answered makes a channel's fd() ready, too. See
  // Lookout: Channel::has_frame() is what it sees.
  void set_asleep(bool asleep) noexcept;

 private:
  friend class InPlaceChannel;
  GradientMemory(std::unique_ptr<SharedMemory> memory, const Shape& shape);
  // Where in the memory the word lies that says whether the trainer sleeps; and the slot in which a
  // channel's requests are left.
  [[nodiscard]] std::size_t sleep_word() const noexcept;
  [[nodiscard]] std::size_t slot(std::size_t channel) const noexcept;

  std::unique_ptr<SharedMemory> memory_;
  std::uint64_t renewals_ = 0;
  // It should be another: whoever was handed it before may look for requests that are not for it.
  bool is_kept_ = false;
  const Shape shape_;
};

}  // namespace disttf::net
