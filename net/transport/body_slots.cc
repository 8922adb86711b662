#include "net/transport/body_slots.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <system_error>
#include <utility>

namespace disttf::net {
namespace {

// No frame has it: it is not known yet which one.
constexpr std::uint64_t kKept = UINT64_MAX;

}  // namespace

std::unique_ptr<BodySlots> BodySlots::create(std::size_t bytes, std::size_t count) {
  std::error_code error;  // whatever it is, frames will do
  const std::optional<std::uint64_t> token = draw_token();
  auto rendezvous = Rendezvous::open(error);
  return rendezvous && token ? std::unique_ptr<BodySlots>(
                                   new BodySlots(std::move(rendezvous), *token, bytes, count))
                             : nullptr;
}

BodySlots::BodySlots(std::unique_ptr<Rendezvous> rendezvous, std::uint64_t token, std::size_t bytes,
                     std::size_t count)
    : rendezvous_(std::move(rendezvous)), token_(token), bytes_(bytes), slots_(count) {}

SharedOffer BodySlots::offer() const noexcept {
  return {.rendezvous = rendezvous_ ? rendezvous_->name() : 0,
          .token = token_,
          .size = largest(bytes_, slots_.size())};
}

std::optional<SharedOffer> BodySlots::answered(std::span<const std::byte> body) {
  const State before = std::exchange(state_, State::kDeclined);
  const std::unique_ptr<Rendezvous> rendezvous = std::move(rendezvous_);
  SharedOffer theirs;
  const bool declines = static_cast<bool>(decode(body, theirs));
  if (before == State::kHandedOver && !declines) {
    state_ = State::kAgreed;
    return std::nullopt;
  }
  if (before != State::kOffered || declines) {
    memory_.reset();
    return std::nullopt;
  }
  std::error_code error;  // whatever it is, frames will do
  const std::optional<HandedOver> handed = rendezvous->admit(token_);
  memory_ = handed ? SharedMemory::create(largest(bytes_, slots_.size()), error) : nullptr;
  if (!memory_ || hand_over(handed->peer, theirs.token, memory_->descriptor())) {
    memory_.reset();
    return SharedOffer{};  // which is declined
  }
  state_ = State::kHandedOver;
  return SharedOffer{.token = theirs.token, .size = memory_->bytes().size()};
}

std::size_t BodySlots::place_of(const Slot& slot) const noexcept {
  return static_cast<std::size_t>(&slot - slots_.data()) * whole_pages(bytes_);
}

BodySlots::Slot* BodySlots::find_place(std::size_t bytes) noexcept {
  const auto slot = std::ranges::find(slots_, false, &Slot::is_taken);
  const bool has_room = has_agreed() && slot != slots_.end() && bytes <= bytes_ && bytes != 0;
  return has_room ? &*slot : nullptr;
}

BodySlots::Slot* BodySlots::find_kept(std::span<const std::byte> rest) noexcept {
  if (!memory_ || !lies_in(rest, memory_->bytes())) {
    return nullptr;
  }
  const auto offset = static_cast<std::size_t>(rest.data() - memory_->bytes().data());
  Slot& slot = slots_[offset / whole_pages(bytes_)];
  return slot.is_taken && slot.request_id == kKept ? &slot : nullptr;
}

std::span<std::byte> BodySlots::keep(std::size_t head, std::size_t rest) {
  Slot* const slot = find_place(head + rest);
  if (slot == nullptr) {
    return {};
  }
  *slot = {.is_taken = true, .request_id = kKept};
  return memory_->bytes().subspan(place_of(*slot) + head, rest);
}

bool BodySlots::leave(FrameHeader& header, std::span<const std::byte> head,
                      std::span<const std::byte> rest) {
  const std::size_t size = head.size() + rest.size();
  Slot* const kept = find_kept(rest);
  Slot* const slot = kept != nullptr ? kept : find_place(size);
  if (slot == nullptr) {
    return false;
  }
  *slot = {.is_taken = true, .request_id = header.request_id};
  const auto body = memory_->bytes().subspan(place_of(*slot), size);
  std::copy(head.begin(), head.end(), body.begin());
  const auto behind = body.subspan(head.size());
  assert(kept == nullptr || behind.data() == rest.data());
  if (kept == nullptr) {
    std::copy(rest.begin(), rest.end(), behind.begin());
  }
  header.flags |= kFlagInPlace;
  header.place = place_of(*slot);
  header.body_size = size;
  return true;
}

void BodySlots::done(std::uint64_t request_id) noexcept {
  for (Slot& slot : slots_) {
    slot.is_taken = slot.is_taken && slot.request_id > request_id;
  }
}

}  // namespace disttf::net
