#include "net/tcp/gradient_memory.h"

#include <algorithm>
#include <array>
#include <asio/error.hpp>
#include <cassert>
#include <optional>
#include <system_error>
#include <utility>

#include "net/memory/handover.h"
#include "net/memory/header_mailbox.h"
#include "net/wire/messages.h"

namespace disttf::net {
namespace {

// The channel's own requests are numbered from here on, far from those of its user.
constexpr std::uint64_t kFirstId = std::uint64_t{1} << 63U;

MailboxMemory::Shape layout_of(const GradientMemory::Shape& shape) noexcept {
  return {.arena = (shape.count - 1) * whole_pages(shape.bytes) + shape.bytes,
          .mailboxes = shape.channels};
}

}  // namespace

// A channel to one ps. It sends frames where shared memory cannot be used.
class InPlaceChannel final : public Channel {
 public:
  // `number`: of the mailbox for requests; nullopt: requests are frames.
  InPlaceChannel(std::unique_ptr<Channel> channel, GradientMemory& memory,
                 std::optional<std::size_t> number)
      : channel_(std::move(channel)), memory_(memory), number_(number) {}

  [[nodiscard]] std::error_code send(FrameHeader header, std::span<const std::byte> body,
                                     Deadline deadline) override;
  [[nodiscard]] std::error_code send_ahead(const FrameHeader& header,
                                           std::span<const std::byte> body,
                                           std::size_t ready) override {
    return channel_->send_ahead(header, body, ready);
  }
  [[nodiscard]] std::error_code receive_header(FrameHeader& header, Deadline deadline) override;
  [[nodiscard]] std::error_code receive_body(std::span<std::byte> body, Deadline deadline) override;
  void close() noexcept override {
    channel_->close();
    kept_.reset();
    peer_ = {};
  }
  [[nodiscard]] bool is_open() const noexcept override { return channel_->is_open(); }
  [[nodiscard]] int fd() noexcept override { return channel_->fd(); }

  [[nodiscard]] std::error_code agree(std::size_t most, Deadline deadline) override;
  [[nodiscard]] std::error_code ask(FrameHeader question, std::optional<FrameHeader>& answer,
                                    Deadline deadline) override;
  [[nodiscard]] bool is_in_place() const noexcept override { return view_ != nullptr; }
  [[nodiscard]] bool has_frame() const noexcept override { return kept_ || peer_.has_new(); }
  [[nodiscard]] BodyLocation body_location() const override { return body_; }

 private:
  // Whether the ps is polling for requests in the mailbox. REQUIRES: is_in_place().
  [[nodiscard]] bool is_ps_awake() const noexcept { return peer_.has_flag() && !peer_.is_parked(); }
  void all_read() noexcept {
    unanswered_.reset();
    left_ = 0;
    left_when_asked_ = 0;
  }
  // Whether this request may go through the mailbox. It must overtake no frame and overwrite no
  // unread header.
  [[nodiscard]] bool may_leave(const FrameHeader& header) const noexcept {
    // A parked ps has to be woken by a frame anyway, so the request itself is sent as that frame.
    return number_ && !memory_.is_kept_ && is_settled() && is_left_request(header) &&
           !unanswered_ && left_ < kHeadersInMailbox && is_ps_awake();
  }
  // Whether the ps has agreed to this memory, and not to an earlier one.
  [[nodiscard]] bool is_settled() const noexcept { return view_ && renewals_ == memory_.renewals_; }
  // Puts the request into the mailbox, and wakes the ps if it has parked by now. REQUIRES:
  // may_leave().
  [[nodiscard]] std::error_code leave(const FrameHeader& header, Deadline deadline);
  [[nodiscard]] std::error_code next_header(FrameHeader& header, Deadline deadline);
  // Receives the answer to a question, and skips what a late ps sends unasked.
  [[nodiscard]] std::error_code receive_answer(FrameHeader& header, Deadline deadline);
  // Offers memory. On return the first `size` bytes of `body`, which has room for
  // kBodyBytes<SharedOffer>, are the ps's offer. `size` is 0 if the ps declines, or has answered
  // something else, which is kept for receive_header().
  std::error_code exchange(const SharedOffer& own, std::span<std::byte> body, std::size_t& size,
                           Deadline deadline);
  // Maps the ps's memory, which it has handed over as the body of SHARED says, and hands over the
  // trainer's. `taken`: the offer to send to the ps. On any failure nothing is mapped and `taken`
  // is empty.
  void trade(const PeerListener& peer_listener, std::uint64_t token,
             std::span<const std::byte> body, std::size_t most, SharedOffer& taken);
  [[nodiscard]] bool adopt(Descriptor memory, const SharedOffer& offer, std::size_t most);
  void forget() noexcept {
    peer_ = {};
    view_.reset();
  }
  std::error_code fail(std::error_code error) noexcept {
    close();
    return error;
  }

  const std::unique_ptr<Channel> channel_;
  GradientMemory& memory_;
  const std::optional<std::size_t> number_;
  std::uint64_t renewals_ = 0;              // of the memory that was agreed on
  std::shared_ptr<const SharedView> view_;  // the ps's memory; null: tensors are sent
  PeerMailbox peer_;                        // there: the answers; without a flag: send frames
  // The newest frame that the ps may not have read yet. A request in the mailbox must not overtake
  // it.
  std::optional<std::uint64_t> unanswered_;
  std::size_t left_ = 0;             // requests in the mailbox that the ps may not have read yet
  std::uint64_t asked_ = 0;          // the newest of these that has an answer
  std::size_t left_when_asked_ = 0;  // that one, and those before it
  std::optional<FrameHeader> kept_;  // arrived while another answer was awaited
  std::uint64_t next_id_ = kFirstId;
  BodyLocation body_;  // the unread rest of the last header's body, if that lies in the ps's memory
};

std::error_code InPlaceChannel::send(FrameHeader header, std::span<const std::byte> body,
                                     Deadline deadline) {
  if (header.kind != FrameKind::kPush) {
    peer_.skip();  // a PUSH has no answer, and another request's may be here
  }
  if (is_settled() && memory_.holds(body)) {
    header.flags |= kFlagInPlace;
    header.body_offset = static_cast<std::uint64_t>(body.data() - memory_.memory_->arena().data());
    header.body_size = body.size();
    body = {};
  }
  if (body.empty() && may_leave(header)) {
    return leave(header, deadline);
  }
  if (!is_bodiless<Heartbeat>(header)) {  // a HEARTBEAT may be overtaken
    unanswered_ = header.request_id;
  }
  return channel_->send(header, body, deadline);
}

std::error_code InPlaceChannel::leave(const FrameHeader& header, Deadline deadline) {
  ++left_;
  // A PUSH has no answer. The answer to the next request of another kind covers it.
  if (header.kind != FrameKind::kPush) {
    asked_ = header.request_id;
    left_when_asked_ = left_;
  }
  // The ps may have parked since may_leave() read its flag.
  return peer_.leave(memory_.memory_->mailbox(*number_), header) == Left::kHeaderAndWake
             ? channel_->send(Heartbeat{}.to_header(), {}, deadline)
             : std::error_code{};
}

std::error_code InPlaceChannel::next_header(FrameHeader& header, Deadline deadline) {
  if (kept_) {
    header = *std::exchange(kept_, std::nullopt);
    return {};
  }
  // Any unread answer counts, whichever request it answers: the caller detects a mismatch.
  if (!peer_.has_new()) {
    return channel_->receive_header(header, deadline);
  }
  const std::error_code error = peer_.take(header);
  return error ? fail(error) : error;
}

std::error_code InPlaceChannel::receive_header(FrameHeader& header, Deadline deadline) {
  if (!is_open()) {
    return asio::error::not_connected;
  }
  if (const std::error_code error = next_header(header, deadline)) {
    return error;
  }
  body_ = {};
  const bool is_unasked = is_bodiless<Heartbeat>(header) || is_bodiless<Work>(header);
  // Once the ps has answered a request it has read that request and all earlier ones.
  if (!is_unasked && unanswered_ == header.request_id) {
    all_read();
  } else if (!is_unasked && asked_ == header.request_id) {
    left_ -= std::exchange(left_when_asked_, 0);  // micro-batches may have been sent since then
  }
  if ((header.flags & kFlagInPlace) == 0) {
    return {};
  }
  // The ps's offsets are checked before anything is read through them.
  const std::size_t size = view_ ? view_->bytes().size() : 0;
  if (header.body_size > size || header.body_offset > size - header.body_size) {
    return fail(WireError::kBadBody);
  }
  body_ = {.view = view_, .offset = header.body_offset, .size = header.body_size};
  header.flags &= static_cast<std::uint16_t>(~unsigned{kFlagInPlace});
  header.body_offset = 0;
  return {};
}

std::error_code InPlaceChannel::receive_body(std::span<std::byte> body, Deadline deadline) {
  if (!body_.view) {
    return channel_->receive_body(body, deadline);
  }
  if (body.size() > body_.size) {
    return fail(WireError::kBadBody);
  }
  const auto here = body_.bytes().first(body.size());
  std::copy(here.begin(), here.end(), body.begin());
  body_.offset += body.size();
  body_.size -= body.size();
  return {};
}

// Two rounds. The ps has handed its memory over when it answers the first SHARE. The trainer hands
// over its own before the second SHARE, and the ps answers that one when it has mapped the memory.
std::error_code InPlaceChannel::agree(std::size_t most, Deadline deadline) {
  forget();
  // The ps drops an earlier agreement when it receives SHARE, so this end drops it first. An empty
  // offer is sent all the same, for that effect.
  std::error_code ignored;  // any error means: send frames
  const std::unique_ptr<PeerListener> peer_listener = PeerListener::open(ignored);
  const std::optional<std::uint64_t> token = draw_token();
  SharedOffer own;
  if (peer_listener && token) {
    own = memory_.memory_->shape().offer(number_);
    own.listener_name = peer_listener->name();
    own.token = *token;
  }
  std::array<std::byte, kBodyBytes<SharedOffer>> body{};
  std::size_t size = 0;
  if (const auto error = exchange(own, body, size, deadline)) {
    return error;
  }
  if (own.size == 0) {  // such an offer must be declined
    return size == 0 ? std::error_code{} : fail(WireError::kUnexpected);
  }
  if (size == 0) {
    return {};
  }
  SharedOffer taken;
  trade(*peer_listener, *token, std::span(body).first(size), most, taken);
  if (const auto error = exchange(taken, body, size, deadline)) {
    return error;
  }
  // Without a view nothing was handed over, so the ps cannot have mapped it.
  if (!view_ && size != 0) {
    return fail(WireError::kUnexpected);
  }
  // The ps declines the trainer's memory, so its own is not used either: both ends have agreed, or
  // neither.
  if (size == 0) {
    forget();
  }
  return {};
}

std::error_code InPlaceChannel::exchange(const SharedOffer& own, std::span<std::byte> body,
                                         std::size_t& size, Deadline deadline) {
  size = 0;
  const std::uint64_t id = next_id_++;
  if (const auto error = channel_->send(ShareFrame{id}.to_header(), encode(own), deadline)) {
    return error;
  }
  FrameHeader header;
  if (const auto failed = receive_answer(header, deadline)) {
    return failed;
  }
  SharedFrame shared;
  if (shared.from_header(header)) {
    kept_ = header;
    return {};
  }
  if (shared.request_id != id || (header.body_size != 0 && header.body_size != body.size())) {
    return fail(WireError::kUnexpected);
  }
  // The ps reads frames in order, so its answer shows that it has read all earlier requests.
  all_read();
  size = header.body_size;
  return channel_->receive_body(body.first(size), deadline);
}

// Skips a late wake, and micro-batches that are no longer needed.
std::error_code InPlaceChannel::receive_answer(FrameHeader& header, Deadline deadline) {
  do {
    if (const auto error = channel_->receive_header(header, deadline)) {
      return error;
    }
  } while (is_bodiless<Heartbeat>(header) || is_bodiless<Work>(header));
  return {};
}

std::error_code InPlaceChannel::ask(FrameHeader question, std::optional<FrameHeader>& answer,
                                    Deadline deadline) {
  answer.reset();
  question.request_id = next_id_++;
  if (const auto error = channel_->send(question, {}, deadline)) {
    return error;
  }
  FrameHeader header;
  if (const auto error = receive_answer(header, deadline)) {
    return error;
  }
  if (header.kind != question.kind) {
    kept_ = header;
    return {};
  }
  if (header.request_id != question.request_id || header.body_size != 0) {
    return fail(WireError::kUnexpected);
  }
  all_read();
  answer = header;
  return {};
}

void InPlaceChannel::trade(const PeerListener& peer_listener, std::uint64_t token,
                           std::span<const std::byte> body, std::size_t most, SharedOffer& taken) {
  SharedOffer offer;
  if (decode(body, offer)) {
    return;
  }
  std::optional<HandedOver> handed = peer_listener.admit(token);
  // The ps's memory is mapped first: the trainer's is handed over only where the ps's is usable.
  if (!handed || !adopt(std::move(handed->what), offer, most)) {
    return;
  }
  if (hand_over(handed->peer, offer.token, memory_.memory_->descriptor())) {
    forget();
    return;
  }
  taken = memory_.memory_->shape().offer(number_);
  taken.token = offer.token;
}

bool InPlaceChannel::adopt(Descriptor memory, const SharedOffer& offer, std::size_t most) {
  std::error_code error;
  auto view = SharedView::map(std::move(memory), offer, most, error);
  if (!view) {
    return false;
  }
  const PeerMailbox peer(view->bytes(), offer);
  if (offer.slot != 0 && !peer.has_mailbox()) {
    return false;  // the ps would leave answers where this end cannot read
  }
  view_ = std::move(view);
  renewals_ = memory_.renewals_;
  peer_ = peer;
  return true;
}

// ------------------------------------------------------------------------------------- the memory

std::unique_ptr<GradientMemory> GradientMemory::create(const Shape& shape) {
  auto memory = MailboxMemory::create(layout_of(shape));
  return memory ? std::unique_ptr<GradientMemory>(new GradientMemory(std::move(memory), shape))
                : nullptr;
}

std::size_t GradientMemory::largest(const Shape& shape) noexcept {
  return whole_pages(layout_of(shape).size());
}

std::span<std::byte> GradientMemory::gradient(std::size_t number) const noexcept {
  return memory_->arena().subspan(number * whole_pages(shape_.bytes), shape_.bytes);
}

// Sets the parked flag in the old memory. Otherwise ps that have it mapped would take this trainer
// for awake by a flag that no process updates any more.
bool GradientMemory::renew() {
  auto memory = MailboxMemory::create(layout_of(shape_));
  if (!memory) {
    is_kept_ = true;
    return false;
  }
  set_parked(true);
  // After this line no channel is settled until it agrees again: is_settled() compares the count.
  memory_ = std::move(memory);
  ++renewals_;
  return true;
}

std::unique_ptr<Channel> GradientMemory::carry(std::unique_ptr<Channel> channel,
                                               std::optional<std::size_t> number) {
  assert(number.value_or(0) < shape_.channels);
  return std::make_unique<InPlaceChannel>(std::move(channel), *this, number);
}

}  // namespace disttf::net
