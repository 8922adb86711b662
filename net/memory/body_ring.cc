#include "net/memory/body_ring.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <system_error>
#include <utility>

#include "net/wire/bare_message.h"
#include "net/wire/messages.h"

namespace disttf::net {
namespace {

// The request_id of a reserved slot, whose frame is not known yet.
constexpr std::uint64_t kKept = UINT64_MAX;
// Stands for frames without a request_id that an acknowledgement could confirm.
constexpr std::uint64_t kUnnumbered = UINT64_MAX;

}  // namespace

std::unique_ptr<BodyRing> BodyRing::create(const Shape& shape) {
  std::error_code error;  // any error means: send frames
  const std::optional<std::uint64_t> token = draw_token();
  auto peer_listener = PeerListener::open(error);
  return peer_listener && token
             ? std::unique_ptr<BodyRing>(new BodyRing(std::move(peer_listener), *token, shape))
             : nullptr;
}

BodyRing::BodyRing(std::unique_ptr<PeerListener> peer_listener, std::uint64_t token,
                   const Shape& shape)
    : peer_listener_(std::move(peer_listener)),
      token_(token),
      shape_(shape),
      slots_(count_of(shape)) {}

std::size_t BodyRing::count_of(const Shape& shape) noexcept {
  // Two slots for whole states, because the next one is written while the backup may still need the
  // previous one.
  return shape.count + (shape.whole_bytes != 0 ? 2 : 0);
}

// Slots for bodies with the whole state lie behind the others.
std::size_t BodyRing::place_of(const Shape& shape, std::size_t slot) noexcept {
  const std::size_t others = std::min(slot, shape.count);
  return others * whole_pages(shape.bytes) + (slot - others) * whole_pages(shape.whole_bytes);
}

MailboxMemory::Shape BodyRing::layout_of(const Shape& shape) noexcept {
  return {.arena = place_of(shape, count_of(shape)), .mailboxes = 1};
}

std::size_t BodyRing::largest(const Shape& shape) noexcept { return layout_of(shape).size(); }

SharedOffer BodyRing::offer() const noexcept {
  SharedOffer own = layout_of(shape_).offer(0);
  own.listener_name = peer_listener_ ? peer_listener_->name() : 0;
  own.token = token_;
  return own;
}

// The peer listener is closed in every case, so no other process can fetch the memory later.
std::optional<SharedOffer> BodyRing::answered(std::span<const std::byte> body) {
  // Any failure below leaves the state at "declined"; success sets it again.
  const State before = std::exchange(state_, State::kDeclined);
  const std::unique_ptr<PeerListener> peer_listener = std::move(peer_listener_);
  SharedOffer theirs;
  const bool declines = static_cast<bool>(decode(body, theirs));
  if (before == State::kHandedOver && !declines) {
    state_ = State::kAgreed;
    return std::nullopt;
  }
  // The other end declines, or the answer is not expected in this state.
  if (before != State::kOffered || declines) {
    forget();
    return std::nullopt;
  }
  std::optional<HandedOver> handed = peer_listener->admit(token_);
  memory_ = handed && adopt(std::move(handed->what), theirs)
                ? MailboxMemory::create(layout_of(shape_))
                : nullptr;
  if (!memory_ || hand_over(handed->peer, theirs.token, memory_->descriptor())) {
    forget();
    return SharedOffer{};  // an empty offer declines
  }
  state_ = State::kHandedOver;
  unread_.reset();  // answering the second SHARE shows that all earlier frames were read
  SharedOffer own = offer();
  own.token = theirs.token;
  return own;
}

void BodyRing::forget() noexcept {
  memory_.reset();
  peer_ = {};
  view_.reset();
}

// Maps only the mailbox and the parked flag, which lie side by side; the other end's memory may be
// as large as four times its range.
bool BodyRing::adopt(Descriptor memory, const SharedOffer& theirs) {
  if (theirs.slot == 0 && theirs.parked_flag == 0) {
    return true;
  }
  if (mailbox_within(theirs.size, theirs.slot) == 0 ||
      parked_flag_within(theirs.size, theirs.parked_flag) == 0) {
    return false;  // acknowledgements would be written where this end cannot read
  }
  constexpr std::size_t kMost = 4 * kPageBytes;
  // Both were checked to lie within theirs.size, so the sums below cannot overflow.
  const std::uint64_t begin = std::min(theirs.slot, theirs.parked_flag) / kPageBytes * kPageBytes;
  const std::uint64_t end =
      std::max(theirs.slot + kHeaderMailboxBytes, theirs.parked_flag + kParkedFlagBytes);
  std::error_code error;
  view_ = SharedView::map_part(std::move(memory), theirs, begin, end - begin, kMost, error);
  if (!view_) {
    return false;
  }
  owner_token_ = theirs.token;
  peer_ = PeerMailbox(view_->bytes(), theirs, begin);
  return true;
}

// Small bodies never use a slot for whole states, so they cannot take those that a whole state
// needs.
BodyRing::Slot* BodyRing::find_place(std::size_t bytes) noexcept {
  const bool is_small = bytes <= shape_.bytes;
  if (!has_agreed() || bytes == 0 || (!is_small && bytes > shape_.whole_bytes)) {
    return nullptr;
  }
  const auto slot = std::ranges::find_if(
      slots_, [&](const Slot& each) { return !each.is_taken && is_whole(each) != is_small; });
  return slot != slots_.end() ? &*slot : nullptr;
}

BodyRing::Slot* BodyRing::find_kept(std::span<const std::byte> rest) noexcept {
  if (!memory_ || !lies_in(rest, memory_->arena())) {
    return nullptr;
  }
  // The caller fills the slot directly; its position identifies the reservation.
  const auto offset = static_cast<std::size_t>(rest.data() - memory_->arena().data());
  const auto behind =
      std::ranges::find_if(slots_, [&](const Slot& each) { return place_of(each) > offset; });
  assert(behind != slots_.begin());
  Slot& slot = *(behind - 1);
  return slot.is_taken && slot.request_id == kKept ? &slot : nullptr;
}

std::span<std::byte> BodyRing::keep(std::size_t head, std::size_t rest) {
  Slot* const slot = find_place(head + rest);
  if (slot == nullptr) {
    return {};
  }
  *slot = {.is_taken = true, .request_id = kKept};
  return memory_->arena().subspan(place_of(*slot) + head, rest);
}

Left BodyRing::leave(FrameHeader& header, std::span<const std::byte> head,
                     std::span<const std::byte> rest) {
  const std::size_t size = head.size() + rest.size();
  Slot* const kept = find_kept(rest);
  Slot* const slot = kept != nullptr ? kept : find_place(size);
  if (slot == nullptr) {
    return Left::kNot;
  }
  // The slot is marked before the copy. Only an acknowledgement frees it.
  *slot = {.is_taken = true, .request_id = header.request_id};
  const auto body = memory_->arena().subspan(place_of(*slot), size);
  std::copy(head.begin(), head.end(), body.begin());
  const auto behind = body.subspan(head.size());
  assert(kept == nullptr || behind.data() == rest.data());
  if (kept == nullptr) {
    std::copy(rest.begin(), rest.end(), behind.begin());
  }
  header.flags |= kFlagInPlace;
  header.body_offset = place_of(*slot);
  header.body_size = size;
  // A frame that is not read yet must not be overtaken by a header in memory.
  if (!view_ || unread_ || !may_leave_header()) {
    return Left::kBody;
  }
  return peer_.leave(memory_->mailbox(0), header);
}

// A HEARTBEAT may be overtaken; the agreement orders its own frames.
void BodyRing::sends(const FrameHeader& header) noexcept {
  if (is_bodiless<Heartbeat>(header) || header.kind == FrameKind::kShare) {
    return;
  }
  // Headers must not be left until this frame is acknowledged, because the reader would take them
  // first.
  unread_ = header.kind == FrameKind::kUpdate ? header.request_id : kUnnumbered;
}

// The newest acknowledged body with the whole state decides: everything before it is free.
void BodyRing::done(std::uint64_t request_id) noexcept {
  acknowledged_ = std::max(acknowledged_, request_id);
  std::uint64_t first_needed = acknowledged_ + 1;
  std::uint64_t newest = 0;
  for (const Slot& slot : slots_) {
    if (slot.is_taken && is_whole(slot) && slot.request_id <= acknowledged_) {
      newest = std::max(newest, slot.request_id);
    }
  }
  // The newest whole state and all bodies after it may still be in use, so their slots stay taken.
  if (newest != 0) {
    first_needed = newest;
  }
  for (Slot& slot : slots_) {
    // A reserved slot stays taken: kKept is above every request_id.
    slot.is_taken = slot.is_taken && slot.request_id >= first_needed;
  }
  if (unread_ && *unread_ <= request_id) {
    unread_.reset();
  }
}

// A frame without an acknowledgement may be unread, so its header still occupies the mailbox.
bool BodyRing::may_leave_header() const noexcept {
  // The slot of the body that was just left is counted already, hence "at most" below.
  const auto is_unread = [this](const Slot& slot) {
    return slot.is_taken && slot.request_id != kKept && slot.request_id > acknowledged_;
  };
  return static_cast<std::size_t>(std::ranges::count_if(slots_, is_unread)) <= kHeadersInMailbox;
}

bool BodyRing::is_malformed(const FrameHeader& header) const noexcept {
  return SharedFrame{}.from_header(header) ||
         (header.bytes_behind() != 0 && header.bytes_behind() != kBodyBytes<SharedOffer>);
}

// The memory was handed over before the second SHARE is sent, so the other end finds it there.
std::error_code BodyRing::negotiate(const FrameHeader& header, std::span<const std::byte> body,
                                    std::optional<Reply>& reply) {
  if (const std::optional<SharedOffer> next = answered(body)) {
    reply = {.header = ShareFrame{header.request_id}.to_header(), .body = encode(*next)};
  }
  return {};
}

// The slot of a body becomes free before the owner handles the ACK, so the owner may send the next
// body at once.
void BodyRing::received(const FrameHeader& header) noexcept {
  if (is_bodiless<Ack>(header)) done(header.request_id);
}

std::error_code BodyRing::take_header(FrameHeader& header) noexcept {
  const std::error_code error = peer_.take(header);
  return error || is_bodiless<Ack>(header) ? error : WireError::kUnexpected;
}

void BodyRing::set_parked(bool parked) noexcept {
  if (memory_) {
    memory_->set_parked(parked);
  }
}

}  // namespace disttf::net
