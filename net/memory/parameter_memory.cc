#include "net/memory/parameter_memory.h"

#include <system_error>
#include <utility>

#include "net/memory/handover.h"

namespace disttf::net {

// ------------------------------------------------------------------------------------- the memory

ParameterMemory::ParameterMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes,
                                 std::size_t slots)
    : memory_(std::move(memory)), bytes_(bytes), requests_(slots) {
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
    set_owner_token(header_mailbox(slot), 0);
  }
}

std::shared_ptr<ParameterMemory> ParameterMemory::create(std::size_t bytes, std::size_t slots) {
  std::error_code error;  // any error means: send frames
  auto memory = SharedMemory::create(largest(bytes, slots), error);
  return memory ? std::shared_ptr<ParameterMemory>(
                      new ParameterMemory(std::move(memory), bytes, slots))
                : nullptr;
}

std::size_t ParameterMemory::largest(std::size_t bytes, std::size_t slots) noexcept {
  // The parked flag has a cache line of its own, after the mailboxes.
  return bytes + slots * kHeaderMailboxBytes + kLineBytes;
}

std::size_t ParameterMemory::place_of(std::size_t slot) const noexcept {
  return bytes_ + slot * kHeaderMailboxBytes;
}

void ParameterMemory::set_parked(bool parked) noexcept {
  net::set_parked(ParkedFlag(memory_->bytes().subspan(parked_flag(), kParkedFlagBytes)), parked);
}

bool ParameterMemory::poll() noexcept {
  bool wakes = false;
  for (const InPlaceBodies* const each : requests_) {
    // Every mailbox is read, even after one has given work: a wake concerns the whole ps.
    if (each != nullptr && each->has_request() && each->on_request_ && each->on_request_()) {
      wakes = true;
    }
  }
  return wakes;
}

// --------------------------------------------------------------------------------- a connection's

PendingHandover::PendingHandover(Descriptor peer, const SharedOffer& theirs, const SharedOffer& own,
                                 const InPlaceTerms& terms)
    : peer_(std::move(peer)),
      theirs_(theirs),
      own_(own),
      parameters_(terms.memory),
      slot_(terms.slot),
      most_(terms.most) {}

std::unique_ptr<PendingHandover> PendingHandover::begin(
    const SharedOffer& offer, const std::function<InPlaceTerms()>& ask_for_terms,
    std::vector<std::byte>& answer) {
  answer.clear();
  std::error_code error;  // any error means: send frames
  Descriptor peer = connect_to_peer_listener(offer.listener_name, error);
  const std::optional<std::uint64_t> token = draw_token();
  if (error || !token) {
    return nullptr;
  }
  // Asked late: computing the terms allocates the ps's memory, which most connections do not need.
  const InPlaceTerms terms = ask_for_terms();
  // Declines memory that is too small for a gradient, or larger than this ps accepts to map.
  if (!terms.memory || offer.size < terms.least || offer.size > terms.most) {
    return nullptr;
  }
  const SharedMemory& memory = *terms.memory->memory_;
  // Handed over before the answer is sent: a trainer that receives SHARED finds the descriptor.
  if (hand_over(peer, offer.token, memory.descriptor())) {
    return nullptr;
  }
  const SharedOffer own = {
      .token = *token,
      .size = memory.bytes().size(),
      // A mailbox is offered only if the peer has a parked flag: without one this end could not
      // tell when a wake is needed.
      .slot = terms.slot && parked_flag_within(offer.size, offer.parked_flag) != 0
                  ? terms.memory->place_of(*terms.slot)
                  : 0,
      .parked_flag = terms.slot ? terms.memory->parked_flag() : 0};
  answer = encode(own);
  return std::unique_ptr<PendingHandover>(new PendingHandover(std::move(peer), offer, own, terms));
}

std::unique_ptr<InPlaceBodies> PendingHandover::finish(std::vector<std::byte>& answer) const {
  answer.clear();
  // Does not block: the trainer has handed its memory over before it sent the second SHARE.
  Descriptor memory = take_over(peer_, own_.token);
  // A weak pointer, because the ps may have replaced its memory between the two messages.
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (!memory.is_open() || !parameters) {
    return nullptr;
  }
  std::error_code error;  // any error means: send frames
  auto gradient = SharedView::map(std::move(memory), theirs_, most_, error);
  if (!gradient) {
    return nullptr;
  }
  answer = encode(own_);
  return std::unique_ptr<InPlaceBodies>(
      new InPlaceBodies(std::move(gradient), parameters, slot_, theirs_, own_.token));
}

// The peer agrees over one connection at a time. An earlier connection stops reading its requests,
// which belong to this connection now.
InPlaceBodies::InPlaceBodies(std::shared_ptr<const SharedView> gradient,
                             const std::shared_ptr<ParameterMemory>& parameters,
                             std::optional<std::size_t> slot, const SharedOffer& theirs,
                             std::uint64_t token)
    : gradient_(std::move(gradient)),
      parameters_(parameters),
      slot_(slot),
      parked_flag_(slot ? parked_flag_within(theirs.size, theirs.parked_flag) : 0),
      requests_at_(slot ? mailbox_within(theirs.size, theirs.slot) : 0) {
  if (!takes_requests()) {
    return;
  }
  // Headers of an earlier agreement are old; reading them again would apply requests twice.
  taken_.skip(requests());
  if (InPlaceBodies* const before = std::exchange(parameters->requests_[*slot], this)) {
    before->requests_at_ = 0;
  }
  // Set last. From here on the primary counts updates as handed off, so this end has to be ready to
  // read them.
  set_owner_token(parameters->header_mailbox(*slot_), token);
}

InPlaceBodies::~InPlaceBodies() {
  take_no_more();
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (takes_requests() && parameters) {
    parameters->requests_[*slot_] = nullptr;
  }
}

bool InPlaceBodies::has_request() const noexcept {
  return takes_requests() && taken_.has_new(requests());
}

// If the memory is gone, its destructor has cleared the token. If another connection has taken the
// mailbox, requests_at_ is 0 and the token there is that connection's.
void InPlaceBodies::take_no_more() noexcept {
  const std::shared_ptr<ParameterMemory> parameters = parameters_.lock();
  if (takes_requests() && parameters) {
    set_owner_token(parameters->header_mailbox(*slot_), 0);
  }
}

std::error_code InPlaceBodies::take_request(FrameHeader& header) noexcept {
  const std::error_code error = taken_.take(requests(), header);
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
  const std::span<const std::byte> bytes = gradient_->bytes();
  // Position and size come from the peer, and their sum could overflow, so the comparison avoids
  // it.
  if (header.body_size > bytes.size() || header.body_offset > bytes.size() - header.body_size) {
    return std::nullopt;
  }
  return BodyInPlace{.bytes = bytes.subspan(header.body_offset, header.body_size),
                     .owner = gradient_};
}

Left InPlaceBodies::leave(FrameHeader& header, std::span<const std::byte> body) {
  const std::shared_ptr<ParameterMemory> memory = parameters_.lock();
  // Only the ps's own parameters are mapped by the peer. Any other body is sent.
  if (!memory || !lies_in(body, memory->parameters())) {
    return Left::kNot;
  }
  header.flags |= kFlagInPlace;
  header.body_offset = static_cast<std::uint64_t>(body.data() - memory->parameters().data());
  header.body_size = body.size();
  return parked_flag_ == 0 ? Left::kBody : leave_header(*memory, header);
}

Left InPlaceBodies::leave_ack(const FrameHeader& header) {
  const std::shared_ptr<ParameterMemory> memory = parameters_.lock();
  // Left only for the update that was taken last: other acknowledgements must not overtake frames.
  const bool is_awaited = std::exchange(taken_update_, std::nullopt) == header.request_id;
  return memory && is_awaited && parked_flag_ != 0 ? leave_header(*memory, header) : Left::kNot;
}

Left InPlaceBodies::leave_header(const ParameterMemory& memory, const FrameHeader& header) const {
  const auto word = gradient_->bytes().subspan(parked_flag_, kParkedFlagBytes);
  return net::leave_header(memory.header_mailbox(*slot_), header, ParkedFlagView(word));
}

}  // namespace disttf::net
