#include "net/transport/parameter_memory.h"

#include <system_error>
#include <utility>

#include "net/transport/answer_slot.h"
#include "net/transport/handover.h"

namespace disttf::net {
namespace {

// Bodies are tensors, which begin at a cache line.

// Where the trainer's sleep word lies, if it says where it does; else 0.
std::size_t sleep_word_in(const SharedOffer& offer) noexcept {
  const bool is_there = offer.signal % kSleepWordBytes == 0 && offer.size >= kSleepWordBytes &&
                        offer.signal <= offer.size - kSleepWordBytes;
  return is_there ? offer.signal : 0;
}

}  // namespace

// ------------------------------------------------------------------------------------- the memory

ParameterMemory::ParameterMemory(std::unique_ptr<SharedMemory> memory, std::size_t bytes)
    : memory_(std::move(memory)), bytes_(bytes) {}

std::shared_ptr<ParameterMemory> ParameterMemory::create(std::size_t bytes, std::size_t trainers) {
  std::error_code error;  // whatever it is, frames will do
  auto memory = SharedMemory::create(largest(bytes, trainers), error);
  return memory ? std::shared_ptr<ParameterMemory>(new ParameterMemory(std::move(memory), bytes))
                : nullptr;
}

std::size_t ParameterMemory::largest(std::size_t bytes, std::size_t trainers) noexcept {
  return bytes + trainers * kAnswerSlotBytes;
}

std::size_t ParameterMemory::slot_of(std::size_t trainer) const noexcept {
  return bytes_ + trainer * kAnswerSlotBytes;
}

// --------------------------------------------------------------------------------- a connection's

PendingHandover::PendingHandover(Descriptor peer, const SharedOffer& theirs, const SharedOffer& own,
                                 const InPlaceTerms& terms)
    : peer_(std::move(peer)),
      theirs_(theirs),
      own_(own),
      parameters_(terms.memory),
      trainer_(terms.trainer),
      most_(terms.most) {}

std::unique_ptr<PendingHandover> PendingHandover::begin(const SharedOffer& offer,
                                                        const InPlaceTerms& terms,
                                                        std::vector<std::byte>& answer) {
  answer.clear();
  const std::optional<std::uint64_t> token = draw_token();
  if (!terms.memory || offer.size < terms.least || offer.size > terms.most || !token) {
    return nullptr;
  }
  std::error_code error;  // whatever it is, frames will do
  Descriptor peer = meet(offer.rendezvous, error);
  const SharedMemory& memory = *terms.memory->memory_;
  if (error || hand_over(peer, offer.token, memory.descriptor())) {
    return nullptr;
  }
  const SharedOffer own = {
      .token = *token,
      .size = memory.bytes().size(),
      .signal = sleep_word_in(offer) != 0 ? terms.memory->slot_of(terms.trainer) : 0};
  answer = encode(own);
  return std::unique_ptr<PendingHandover>(new PendingHandover(std::move(peer), offer, own, terms));
}

std::unique_ptr<InPlaceBodies> PendingHandover::finish(std::vector<std::byte>& answer) const {
  answer.clear();
  Descriptor memory = take_over(peer_, own_.token);
  if (!memory.is_open() || parameters_.expired()) {
    return nullptr;
  }
  std::error_code error;  // whatever it is, frames will do
  auto gradient = SharedView::map(std::move(memory), theirs_, most_, error);
  if (!gradient) {
    return nullptr;
  }
  answer = encode(own_);
  return std::unique_ptr<InPlaceBodies>(
      new InPlaceBodies(std::move(gradient), parameters_, trainer_, sleep_word_in(theirs_)));
}

InPlaceBodies::InPlaceBodies(std::shared_ptr<const SharedView> gradient,
                             std::weak_ptr<ParameterMemory> parameters, std::size_t trainer,
                             std::size_t sleep_word)
    : gradient_(std::move(gradient)),
      parameters_(std::move(parameters)),
      trainer_(trainer),
      sleep_word_(sleep_word) {}

std::optional<BodyInPlace> InPlaceBodies::find(const FrameHeader& header) const {
  const std::span<const std::byte> bytes = gradient_->bytes();
  if (header.body_size > bytes.size() || header.place > bytes.size() - header.body_size) {
    return std::nullopt;
  }
  return BodyInPlace{.bytes = bytes.subspan(header.place, header.body_size), .owner = gradient_};
}

InPlaceBodies::Left InPlaceBodies::leave(FrameHeader& header, std::span<const std::byte> body) {
  const std::shared_ptr<ParameterMemory> memory = parameters_.lock();
  if (!memory || !lies_in(body, memory->parameters())) {
    return Left::kNot;
  }
  header.flags |= kFlagInPlace;
  header.place = static_cast<std::uint64_t>(body.data() - memory->parameters().data());
  header.body_size = body.size();
  if (sleep_word_ == 0) {
    return Left::kBody;
  }
  const std::span<std::byte> slot =
      memory->memory_->bytes().subspan(memory->slot_of(trainer_), kAnswerSlotBytes);
  leave_answer(AnswerSlot(slot), header);
  const auto word = gradient_->bytes().subspan(sleep_word_, kSleepWordBytes);
  return is_asleep(SleepWordView(word)) ? Left::kAndRing : Left::kAnswer;
}

}  // namespace disttf::net
