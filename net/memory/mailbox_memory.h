// Shared memory of one end of a connection: an arena for bodies of frames, mailboxes for their
// headers, and the end's parked flag (net/memory/header_mailbox.h). The other end maps it and
// reads it by a PeerMailbox. Trainers, ps, primaries and backups all have such memory.
//
// Layout: the arena; from the next cache line on the mailboxes; behind them the parked flag, on a
// cache line of its own.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "net/memory/header_mailbox.h"
#include "net/memory/shared_memory.h"

namespace disttf::net {

class MailboxMemory {
 public:
  struct Shape {
    std::size_t arena = 0;      // bytes
    std::size_t mailboxes = 0;  // number
    // The size of the memory, and the offsets in it of a mailbox and of the parked flag.
    [[nodiscard]] std::size_t size() const noexcept { return parked_flag() + kLineBytes; }
    [[nodiscard]] std::size_t mailbox(std::size_t number) const noexcept {
      return (arena + kLineBytes - 1) / kLineBytes * kLineBytes + number * kHeaderMailboxBytes;
    }
    [[nodiscard]] std::size_t parked_flag() const noexcept { return mailbox(mailboxes); }
    // What an offer says of the memory. nullopt: no mailbox.
    [[nodiscard]] SharedOffer offer(std::optional<std::size_t> number) const noexcept {
      return {.size = size(), .slot = number ? mailbox(*number) : 0, .parked_flag = parked_flag()};
    }
  };
  // Zeroed. Returns nullptr where the system has no memory to share.
  [[nodiscard]] static std::unique_ptr<MailboxMemory> create(const Shape& shape);

  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  // Begins on a page boundary.
  [[nodiscard]] std::span<std::byte> arena() const noexcept {
    return memory_->bytes().first(shape_.arena);
  }
  // REQUIRES: number < shape().mailboxes.
  [[nodiscard]] HeaderMailbox mailbox(std::size_t number) const noexcept {
    return HeaderMailbox(memory_->bytes().subspan(shape_.mailbox(number), kHeaderMailboxBytes));
  }
  void set_parked(bool parked) noexcept;
  // The descriptor to hand over.
  [[nodiscard]] int descriptor() const noexcept { return memory_->descriptor(); }

 private:
  MailboxMemory(std::unique_ptr<SharedMemory> memory, const Shape& shape) noexcept
      : memory_(std::move(memory)), shape_(shape) {}

  const std::unique_ptr<SharedMemory> memory_;
  const Shape shape_;
};

}  // namespace disttf::net
