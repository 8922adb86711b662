#include "net/transport/body_slots.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace disttf::net {

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

bool BodySlots::leave(FrameHeader& header, std::span<const std::byte> head,
                      std::span<const std::byte> rest) {
  const std::size_t size = head.size() + rest.size();
  const auto slot = std::ranges::find(slots_, false, &Slot::is_taken);
  if (!has_agreed() || slot == slots_.end() || size > bytes_ || size == 0) {
    return false;
  }
  *slot = {.is_taken = true, .request_id = header.request_id};
  const std::size_t place = static_cast<std::size_t>(slot - slots_.begin()) * whole_pages(bytes_);
  const auto at = std::copy(head.begin(), head.end(), memory_->bytes().subspan(place).begin());
  std::copy(rest.begin(), rest.end(), at);
  header.flags |= kFlagInPlace;
  header.place = place;
  header.body_size = size;
  return true;
}

void BodySlots::done(std::uint64_t request_id) noexcept {
  for (Slot& slot : slots_) {
    slot.is_taken = slot.is_taken && slot.request_id > request_id;
  }
}

}  // namespace disttf::net
