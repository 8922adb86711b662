#include "net/memory/parameter_memory.h"

#include <system_error>
#include <utility>

#include "net/memory/handover.h"
#include "net/wire/messages.h"

namespace disttf::net {

// ------------------------------------------------------------------------------------- the memory

ParameterMemory::ParameterMemory(std::unique_ptr<MailboxMemory> memory)
    : memory_(std::move(memory)), requests_(memory_->shape().mailboxes) {
  // Marked as parked at first, so peers send a wake until a poll actually runs.
  set_parked(true);
}

ParameterMemory::~ParameterMemory() {
  // The token is cleared first, so no peer can hand off a request after the last look.
  take_no_more();
  set_parked(true);
  // Connections read what is in their mailboxes before the memory is unmapped.
  poll();
}

void ParameterMemory::take_no_more() noexcept {
  for (std::size_t slot = 0; slot < requests_.size(); ++slot) {
    set_owner_token(memory_->mailbox(slot), 0);
  }
}

std::shared_ptr<ParameterMemory> ParameterMemory::create(std::size_t bytes, std::size_t slots) {
  auto memory = MailboxMemory::create({.arena = bytes, .mailboxes = slots});
  return memory ? std::shared_ptr<ParameterMemory>(new ParameterMemory(std::move(memory)))
                : nullptr;
}

std::size_t ParameterMemory::largest(std::size_t bytes, std::size_t slots) noexcept {
  return MailboxMemory::Shape{.arena = bytes, .mailboxes = slots}.size();
}

bool ParameterMemory::poll() noexcept {
  bool wakes = false;
  for (const InPlaceBodies* const each : requests_) {
    // Every mailbox is read, even after one has given work: a wake concerns the whole ps.
    if (each != nullptr && each->has_header() && each->wake_ && each->wake_()) {
      wakes = true;
    }
  }
  return wakes;
}

// --------------------------------------------------------------------------------- a connection's

bool InPlaceBodies::is_malformed(const FrameHeader& header) const noexcept {
  return ShareFrame{}.from_header(header) || header.bytes_behind() != kBodyBytes<SharedOffer>;
}

std::error_code InPlaceBodies::negotiate(const FrameHeader& header, std::span<const std::byte> body,
                                         std::optional<Reply>& reply) {
  SharedOffer offer;
  if (const std::error_code error = decode(body, offer)) {
    return error;
  }
  reply = {.header = SharedFrame{header.request_id}.to_header(), .body = answer(offer)};
  return {};
}

// Only the first SHARE of an agreement has a listener's name, which tells the two rounds apart.
std::vector<std::byte> InPlaceBodies::answer(const SharedOffer& offer) {
  const std::optional<Pending> pending = std::exchange(pending_, std::nullopt);
  forget();
  if (offer.listener_name != 0) {
    begin(offer);
    return pending_ ? encode(pending_->own) : std::vector<std::byte>{};
  }
  if (pending && offer.size != 0) {
    finish(*pending);
  }
  return has_agreed() ? encode(pending->own) : std::vector<std::byte>{};
}

void InPlaceBodies::begin(const SharedOffer& offer) {
  std::error_code error;  // any error means: send frames
  Descriptor peer = connect_to_peer_listener(offer.listener_name, error);
  const std::optional<std::uint64_t> token = draw_token();
  if (error || !token) {
    return;
  }
  // Asked late: computing the terms allocates the ps's memory, which most connections do not need.
  const InPlaceTerms terms = ask_for_terms_();
  // Declines memory that is too small for a gradient, or larger than this ps accepts to map.
  const auto own_memory = std::dynamic_pointer_cast<ParameterMemory>(terms.memory);
  if (!own_memory || offer.size < terms.least || offer.size > terms.most) {
    return;
  }
  const MailboxMemory& memory = *own_memory->memory_;
  // Handed over before the answer is sent: a trainer that receives SHARED finds the descriptor.
  if (hand_over(peer, offer.token, memory.descriptor())) {
    return;
  }
  parameters_ = own_memory;
  slot_ = terms.slot;
  // A mailbox is offered only if the peer has a parked flag: without one this end could not tell
  // when a wake is needed.
  const bool has_flag = parked_flag_within(offer.size, offer.parked_flag) != 0;
  SharedOffer own = memory.shape().offer(has_flag ? slot_ : std::nullopt);
  own.token = *token;
  if (!slot_) {
    own.parked_flag = 0;
  }
  pending_ = {.peer = std::move(peer), .theirs = offer, .own = own, .most = terms.most};
}

// The peer agrees over one connection at a time. An earlier connection stops reading its requests,
// which belong to this connection now.
void InPlaceBodies::finish(const Pending& pending) {
  // Does not block: the trainer has handed its memory over before it sent the second SHARE.
  Descriptor memory = take_over(pending.peer, pending.own.token);
  // A weak pointer, because the ps may have replaced its memory between the two messages.
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (!memory.is_open() || !parameters) {
    return;
  }
  std::error_code error;  // any error means: send frames
  view_ = SharedView::map(std::move(memory), pending.theirs, pending.most, error);
  if (!view_ || !slot_) {
    return;
  }
  // Headers of an earlier agreement are skipped; reading them again would apply requests twice.
  peer_ = PeerMailbox(view_->bytes(), pending.theirs);
  if (!peer_.has_mailbox()) {
    return;
  }
  if (InPlaceBodies* const before = std::exchange(parameters->requests_[*slot_], this)) {
    before->peer_.forget_mailbox();
  }
  // Set last. From here on the primary counts updates as handed off, so this end has to be ready to
  // read them.
  set_owner_token(parameters->memory_->mailbox(*slot_), pending.own.token);
}

InPlaceBodies::~InPlaceBodies() { forget(); }

void InPlaceBodies::forget() noexcept {
  take_no_more();
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (peer_.has_mailbox() && parameters) {
    parameters->requests_[*slot_] = nullptr;
  }
  peer_ = {};
  view_.reset();
  taken_update_.reset();
}

// If the memory is gone, its destructor has cleared the token. If another connection has taken the
// mailbox, there is none here, and the token there is that connection's.
void InPlaceBodies::take_no_more() noexcept {
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (peer_.has_mailbox() && parameters) {
    set_owner_token(parameters->memory_->mailbox(*slot_), 0);
  }
}

std::error_code InPlaceBodies::take_header(FrameHeader& header) noexcept {
  const std::error_code error = peer_.take(header);
  if (error || !is_left_request(header)) {
    return error ? error : WireError::kUnexpected;
  }
  // Cleared before each request, so an ACK can confirm only the update that was taken last.
  taken_update_.reset();
  if (header.kind == FrameKind::kUpdate) {
    taken_update_ = header.request_id;
  }
  return {};
}

std::optional<BodyInPlace> InPlaceBodies::find(const FrameHeader& header) const {
  const std::span<const std::byte> bytes = view_->bytes();
  // Position and size come from the peer, and their sum could overflow, so the comparison avoids
  // it.
  if (header.body_size > bytes.size() || header.body_offset > bytes.size() - header.body_size) {
    return std::nullopt;
  }
  return BodyInPlace{.bytes = bytes.subspan(header.body_offset, header.body_size), .owner = view_};
}

Left InPlaceBodies::leave(FrameHeader& header, std::span<const std::byte> body) {
  const std::shared_ptr<ParameterMemory> memory = parameters_.lock();
  // Only the ps's own parameters are mapped by the peer. Any other body is sent.
  if (!has_agreed() || !memory || !lies_in(body, memory->parameters())) {
    return Left::kNot;
  }
  header.flags |= kFlagInPlace;
  header.body_offset = static_cast<std::uint64_t>(body.data() - memory->parameters().data());
  header.body_size = body.size();
  return peer_.has_flag() ? peer_.leave(memory->memory_->mailbox(*slot_), header) : Left::kBody;
}

Left InPlaceBodies::leave_ack(const FrameHeader& header) {
  const std::shared_ptr<ParameterMemory> memory = parameters_.lock();
  // Left only for the update that was taken last: other acknowledgements must not overtake frames.
  const bool is_awaited = std::exchange(taken_update_, std::nullopt) == header.request_id;
  return memory && is_awaited && peer_.has_flag()
             ? peer_.leave(memory->memory_->mailbox(*slot_), header)
             : Left::kNot;
}

}  // namespace disttf::net
