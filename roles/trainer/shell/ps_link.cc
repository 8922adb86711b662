#include "roles/trainer/shell/ps_link.h"

#include <algorithm>
#include <string>
#include <utility>

#include "math/aligned.h"
#include "math/random.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// One host of a range that has two.
constexpr std::chrono::seconds kHostAttempt{1};

// Below, several writes cost more than there is to be gained: a megabyte, a millisecond at 10
// Gbit/s.
constexpr std::size_t kLeastAheadBytes = std::size_t{1} << 20U;

// Faults of its own for each trainer and ps.
net::FaultOptions fault_options(const Task& task, std::size_t ps_index, const std::string& name) {
  return {.seed = task.faults.seed,
          .per_1000 = task.faults.per_1000,
          .purpose = static_cast<std::uint32_t>(math::Purpose::kFrameFault),
          .stream = (task.cluster.rank_of(task.self) << 16U) + ps_index,
          .random_bits = &math::random_bits,
          .log = [name](const std::string& what) {
            log_info("injected fault on the way to " + name + ": " + what);
          }};
}

}  // namespace

PsLink::PsLink(const Task& task, const StopSignal& stop, std::size_t ps_index, bool& replicated)
    : task_(task),
      stop_(stop),
      ps_{.job = net::Job::kPs, .index = ps_index},
      name_(describe(task.cluster, ps_)),
      replicated_(replicated) {
  if (task.faults.per_1000 > 0) {
    faults_.emplace(fault_options(task, ps_index, name_));
  }
}

std::error_code PsLink::open(net::Deadline deadline) {
  if (is_open()) {
    return {};
  }
  std::error_code error;
  for (int attempt = 0; attempt < 2; ++attempt) {
    // A host that swallows packets must not keep the link from the other one.
    error =
        open_host(replicated_ ? std::min(deadline, net::Clock::now() + kHostAttempt) : deadline);
    if (!error || !replicated_) {
      break;
    }
    replica_ = replica_ == 0 ? 1 : 0;
  }
  return error;
}

// Fails when another host is the primary, or none is yet.
std::error_code PsLink::open_host(net::Deadline deadline) {
  const net::TaskId host = host_of_range(task_.cluster, ps_.index, replica_);
  net::OpenedChannel opened = net::open_channel(task_.cluster.address_of(host),
                                                {.cluster = net::hash_of(task_.cluster),
                                                 .from = task_.self,
                                                 .to = host,
                                                 .purpose = net::ChannelPurpose::kStep,
                                                 .replica = replica_,
                                                 .incarnation = task_.incarnation},
                                                stop_.interrupt(), deadline);
  stop_.throw_if_stopped();
  if (opened.error == net::WireError::kRefused) {
    throw_refused(opened.refusal);
  }
  throw_if_out_of_descriptors(opened.error, "connect to " + name_);
  if (opened.error) {
    return opened.error;
  }
  const net::Welcome& welcome = opened.welcome;
  replicated_ = replicated_ || welcome.standing != net::Standing::kOnly;
  if (replicated_ && welcome.standing != net::Standing::kPrimary) {
    if (welcome.standing == net::Standing::kOnly && welcome.state != net::ShardState::kEmpty) {
      throw Failure(
          kUsage, "--ps_replicas: 2 is not allowed here: " + name_ + " trains a run that has none");
    }
    return std::make_error_code(std::errc::resource_unavailable_try_again);
  }
  if (replicated_) {
    unshare();  // it may be another process
  }
  const bool is_same =
      welcome.incarnation == incarnation_ && welcome.generation == generation_ &&
      (welcome.state == net::ShardState::kReady || welcome.state == net::ShardState::kFinished);
  begun_ = 0;
  channel_ = faults_ ? faults_->wrap(std::move(opened.channel), stop_.interrupt())
                     : std::move(opened.channel);
  incarnation_ = welcome.incarnation;
  state_ = welcome.state;
  generation_ = welcome.generation;
  if (pinned_ && !is_same) {
    throw StateLost();
  }
  return {};
}

// Not cut short by a signal unless it has to wait: a push that one ps has and another has not would
// leave the ps at different steps, of which no checkpoint can be made. receive() throws.
std::error_code PsLink::send(PsRequest& request) {
  if (!is_open()) {
    return std::make_error_code(std::errc::not_connected);
  }
  const std::uint64_t begun = std::exchange(begun_, 0);
  if (begun != 0 && request.header.kind != FrameKind::kPushPull) {
    close();  // what was begun will not be ended
    return std::make_error_code(std::errc::not_connected);
  }
  request.header.request_id = begun != 0 ? begun : next_request_id_++;
  old_answers_ = answers_at_ != 0 ? net::answer_count(answer_slot()) : 0;
  if (parameters_ &&
      (request.header.kind == FrameKind::kPull || request.header.kind == FrameKind::kPushPull)) {
    FrameHeader header = request.header;
    header.flags |= net::kFlagShared;
    return channel_->send(header, {}, transfer_deadline(0));
  }
  FrameHeader header = request.header;
  std::span<const std::byte> body = request.body;
  if (header.kind == FrameKind::kPushPull || header.kind == FrameKind::kPush) {
    header.flags |= gradient_flags(wire);
    body = pack_gradient(wire, request.gradient, packed_);
  } else if ((header.flags & net::kFlagNext) != 0) {
    header.flags |= tensor_flags(wire);  // a gradient is computed from these; other pulls are exact
  }
  return channel_->send(header, body, transfer_deadline(body.size()));
}

bool PsLink::sends_ahead() const noexcept {
  return is_open() && !parameters_ && gradient_flags(wire) == 0 &&
         range.size() * sizeof(float) >= kLeastAheadBytes;
}

void PsLink::send_ahead(const PsRequest& request, std::size_t ready) {
  if (!sends_ahead() || ready == 0) {
    return;
  }
  if (begun_ == 0) {
    begun_ = next_request_id_++;
  }
  FrameHeader header = request.header;
  header.request_id = begun_;
  // What fails here fails again in send(), where it is dealt with.
  static_cast<void>(
      channel_->send_ahead(header, std::as_bytes(request.gradient), ready * sizeof(float)));
}

std::error_code PsLink::receive(const PsRequest& request, FrameHeader& reply, bool& is_reply) {
  is_reply = false;
  const auto error = receive_header(reply);
  stop_.throw_if_stopped();
  if (error) {
    return error;
  }
  if (reply.kind == FrameKind::kRefused) {
    throw_refused(
        net::receive_refusal(*channel_, reply, net::Clock::now() + task_.timeouts.silence));
  }
  if ((reply.kind == FrameKind::kHeartbeat || reply.kind == FrameKind::kWork) &&
      reply.body_size == 0) {
    return {};
  }
  // An answer to another request than this one, say to a copy of an older one: the two ends do not
  // mean the same any more, and a new connection is the surest way to agree again.
  const bool is_answer = reply.request_id == request.header.request_id;
  if (is_answer && reply.kind == FrameKind::kFenced && reply.body_size == 0) {
    close();  // the next welcome tells what the ps holds now
    throw StateLost();
  }
  if (!is_answer || reply.kind != request.reply) {
    close();
    return net::WireError::kUnexpected;
  }
  is_reply = true;
  if (reply.kind == FrameKind::kParameters) {
    state_ = net::ShardState::kReady;
    generation_ = reply.generation;
    step = reply.step;
    if (request.header.kind == FrameKind::kPushPull && (reply.flags & net::kFlagDropped) == 0) {
      ++acknowledged;
    }
  }
  if (request.text != nullptr) {
    return receive_text(reply.body_size, *request.text);
  }
  if ((reply.flags & net::kFlagShared) != 0) {
    return take_shared(reply, request);
  }
  if ((reply.flags & tensor_flags(wire)) != 0) {
    return receive_rounded(reply.body_size, request.destination);
  }
  if (reply.body_size != request.destination.size()) {
    close();
    return net::WireError::kBadBody;
  }
  return channel_->receive_body(request.destination, transfer_deadline(request.destination.size()));
}

std::error_code PsLink::receive_header(FrameHeader& reply) {
  if (!has_answer()) {
    return channel_->receive_header(reply, net::Clock::now() + task_.timeouts.silence);
  }
  const auto error = net::read_answer(answer_slot(), reply);
  if (error) {
    close();
  }
  return error;
}

// Whichever request it is the answer to: receive() is to see where the two ends disagree.
bool PsLink::has_answer() const noexcept {
  if (answers_at_ == 0) {
    return false;
  }
  const std::uint64_t count = net::answer_count(answer_slot());
  return count != old_answers_ && count % 2 == 0;
}

std::error_code PsLink::receive_rounded(std::uint64_t size, std::span<std::byte> destination) {
  const std::span<float> values{reinterpret_cast<float*>(destination.data()),
                                destination.size() / sizeof(float)};
  if (size != tensor_bytes(wire, values.size())) {
    close();
    return net::WireError::kBadBody;
  }
  packed_.resize(size);
  if (const auto error = channel_->receive_body(packed_, transfer_deadline(size))) {
    return error;
  }
  unpack_tensor(wire, packed_, values);
  return {};
}

// The ps leaves what it has answered with alone until this trainer's next push.
std::error_code PsLink::take_shared(const FrameHeader& reply, const PsRequest& request) {
  const std::span<std::byte> destination = request.destination;
  const std::size_t size = parameters_ ? parameters_->bytes().size() : 0;
  if (reply.body_size != 0 || destination.size() > size ||
      reply.sequence > size - destination.size()) {
    close();
    return net::WireError::kBadBody;
  }
  if (request.place != nullptr) {
    *request.place = {.view = parameters_, .offset = reply.sequence, .size = destination.size()};
  } else {
    std::ranges::copy(parameters_->bytes().subspan(reply.sequence, destination.size()),
                      destination.begin());
  }
  return {};
}

std::error_code PsLink::share(const net::SharedOffer& gradients, std::size_t sleep_word) {
  unshare();
  const auto body = net::encode(gradients);
  std::string answer;
  PsRequest request{.header = {.kind = FrameKind::kShare, .sequence = sleep_word},
                    .body = body,
                    .reply = FrameKind::kShared,
                    .text = &answer};
  FrameHeader reply;
  if (const auto error = exchange(request, reply)) {
    return error;
  }
  net::SharedOffer parameters;
  if (!net::decode(std::as_bytes(std::span(answer)), parameters)) {
    std::error_code error;  // whatever it is, frames will do
    parameters_ = net::SharedView::open(parameters, most_shared, error);
  }
  const bool has_slot = parameters_ && reply.sequence % math::AlignedVector::kAlignmentBytes == 0 &&
                        parameters_->bytes().size() >= net::kAnswerSlotBytes &&
                        reply.sequence <= parameters_->bytes().size() - net::kAnswerSlotBytes;
  if (reply.sequence != 0 && !has_slot) {
    parameters_.reset();  // the ps would leave answers where we cannot look
  }
  answers_at_ = has_slot ? reply.sequence : 0;
  return {};
}

std::error_code PsLink::tell(const FrameHeader& header, std::span<const float> gradient) {
  PsRequest request{.header = header, .gradient = gradient};
  return send(request);
}

std::error_code PsLink::exchange(PsRequest& request, FrameHeader& reply) {
  std::error_code error = send(request);
  for (bool is_reply = false; !error && !is_reply;) {
    error = receive(request, reply, is_reply);
  }
  return error;
}

std::error_code PsLink::receive_text(std::uint64_t size, std::string& text) {
  if (size > net::kMaxControlBodyBytes) {
    close();
    return net::WireError::kBodyTooLarge;
  }
  text.resize(size);
  return channel_->receive_body(std::as_writable_bytes(std::span(text)), transfer_deadline(size));
}

void PsLink::close() noexcept {
  if (channel_) {
    channel_->close();
  }
}

net::Deadline PsLink::transfer_deadline(std::size_t bytes) const {
  return net::Clock::now() + task_.timeouts.silence +
         std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

void PsLink::throw_refused(const net::Refusal& refusal) const {
  // The code comes from a peer: only those that mean something here.
  const int code = refusal.exit_code == kUsage || refusal.exit_code == kLostPeers
                       ? refusal.exit_code
                       : static_cast<int>(kError);
  throw Failure(code, "refused by " + name_ + ": " + refusal.sentence);
}

}  // namespace disttf::roles
