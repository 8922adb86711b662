// What a ps answers from, for trainers on its machine to map: its shard's arena, and behind it a
// slot for the header of each trainer's answer.
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "net/transport/answer_slot.h"
#include "net/transport/shared_memory.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

static_assert(Shard::kArenaAlignment * sizeof(float) == net::kPageBytes);

class AnswerMemory : public std::enable_shared_from_this<AnswerMemory> {
 public:
  // For an arena of so many floats. nullptr where the system has no memory to share.
  [[nodiscard]] static std::shared_ptr<AnswerMemory> create(std::size_t arena_floats,
                                                            std::size_t trainers);

  [[nodiscard]] Arena arena();
  // What a trainer opens it by.
  [[nodiscard]] net::SharedOffer offer() const noexcept { return memory_->offer(); }
  // Where `answer`, a part of the arena, lies, in bytes.
  [[nodiscard]] std::uint64_t offset_of(std::span<const std::byte> answer) const noexcept {
    return static_cast<std::uint64_t>(answer.data() - memory_->bytes().data());
  }
  // Where the slot of this trainer lies, in bytes, and the slot.
  [[nodiscard]] std::uint64_t slot_offset(std::size_t trainer) const noexcept {
    return arena_floats_ * sizeof(float) + trainer * net::kAnswerSlotBytes;
  }
  [[nodiscard]] net::AnswerSlot slot(std::size_t trainer) const noexcept {
    return net::AnswerSlot(memory_->bytes().subspan(slot_offset(trainer), net::kAnswerSlotBytes));
  }

 private:
  AnswerMemory(std::unique_ptr<net::SharedMemory> memory, std::size_t arena_floats)
      : memory_(std::move(memory)), arena_floats_(arena_floats) {}

  const std::unique_ptr<net::SharedMemory> memory_;
  const std::size_t arena_floats_;
};

}  // namespace disttf::roles
