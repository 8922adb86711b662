#include "roles/trainer/shell/ps_link.h"

#include <algorithm>
#include <utility>

#include "math/aligned.h"
#include "math/random.h"
#include "net/transport/peer.h"
#include "roles/process/log.h"
#include "roles/process/machine.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

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

PsLink::PsLink(const Task& task, const StopSignal& stop, std::size_t ps_index)
    : task_(task),
      stop_(stop),
      name_(describe(task.cluster, {.job = net::Job::kPs, .index = ps_index})) {
  if (task.faults.per_1000 > 0) {
    faults_.emplace(fault_options(task, ps_index, name_));
  }
}

DialAnswer PsLink::open(const Dial& dial) {
  net::OpenedChannel opened = net::open_channel(task_.cluster.address_of(dial.host),
                                                {.cluster = net::hash_of(task_.cluster),
                                                 .from = task_.self,
                                                 .to = dial.host,
                                                 .purpose = net::ChannelPurpose::kStep,
                                                 .replica = dial.replica,
                                                 .incarnation = task_.incarnation},
                                                stop_.interrupt(), dial.until);
  stop_.throw_if_stopped();
  if (opened.error == net::WireError::kRefused) {
    return std::move(opened.refusal);
  }
  throw_if_out_of_descriptors(opened.error, "connect to " + name_);
  if (opened.error) {
    return opened.error;
  }
  channel_ = faults_ ? faults_->wrap(std::move(opened.channel), stop_.interrupt())
                     : std::move(opened.channel);
  return opened.welcome;
}

void PsLink::close() noexcept {
  if (channel_) {
    channel_->close();
  }
}

// ---------------------------------------------------------------------------------------- requests

std::error_code PsLink::send(FrameHeader header, std::span<const std::byte> body) {
  if (!is_open()) {
    return std::make_error_code(std::errc::not_connected);
  }
  old_answers_ = answers_at_ != 0 ? net::answer_count(answer_slot()) : 0;
  if (header.kind == FrameKind::kPull) {
    if (parameters_) {
      header.flags |= net::kFlagShared;
    } else if ((header.flags & net::kFlagNext) != 0) {
      header.flags |= tensor_flags(run_.wire);  // a gradient is computed from these; other pulls
    }                                           // are exact
  }
  return channel_->send(header, body, transfer_deadline(body.size()));
}

std::error_code PsLink::push(FrameHeader header, std::span<const float> gradient) {
  if (parameters_ && header.kind == FrameKind::kPushPull) {
    header.flags |= net::kFlagShared;
    return send(header, {});
  }
  header.flags |= gradient_flags(run_.wire);
  return send(header, pack_gradient(run_.wire, gradient, packed_));
}

bool PsLink::sends_ahead() const noexcept {
  return is_open() && !parameters_ && gradient_flags(run_.wire) == 0 &&
         run_.range.size() * sizeof(float) >= kLeastAheadBytes;
}

void PsLink::push_ahead(const FrameHeader& header, std::span<const float> gradient,
                        std::size_t ready) {
  // What fails here fails again in push(), where it is dealt with.
  static_cast<void>(channel_->send_ahead(header, std::as_bytes(gradient), ready * sizeof(float)));
}

// ----------------------------------------------------------------------------------------- replies

std::error_code PsLink::receive_header(FrameHeader& header) {
  if (!has_answer()) {
    return channel_->receive_header(header, net::Clock::now() + task_.timeouts.silence);
  }
  const auto error = net::read_answer(answer_slot(), header);
  if (error) {
    close();
  }
  return error;
}

// Whichever request it is the answer to: RunSession is to see where the two ends disagree.
bool PsLink::has_answer() const noexcept {
  if (answers_at_ == 0) {
    return false;
  }
  const std::uint64_t count = net::answer_count(answer_slot());
  return count != old_answers_ && count % 2 == 0;
}

std::error_code PsLink::receive_parameters(const FrameHeader& header, std::span<float> parameters,
                                           net::JoinedView::Piece* place) {
  const std::span<std::byte> bytes = std::as_writable_bytes(parameters);
  if ((header.flags & net::kFlagShared) != 0) {
    return take_shared(header, bytes, place);
  }
  if ((header.flags & tensor_flags(run_.wire)) != 0) {
    return receive_rounded(header.body_size, parameters);
  }
  if (header.body_size != bytes.size()) {
    return bad_body();
  }
  return channel_->receive_body(bytes, transfer_deadline(bytes.size()));
}

std::error_code PsLink::receive_rounded(std::uint64_t size, std::span<float> parameters) {
  if (size != tensor_bytes(run_.wire, parameters.size())) {
    return bad_body();
  }
  packed_.resize(size);
  if (const auto error = channel_->receive_body(packed_, transfer_deadline(size))) {
    return error;
  }
  unpack_tensor(run_.wire, packed_, parameters);
  return {};
}

// The ps leaves what it has answered with alone until this trainer's next push.
std::error_code PsLink::take_shared(const FrameHeader& header, std::span<std::byte> parameters,
                                    net::JoinedView::Piece* place) {
  const std::size_t size = parameters_ ? parameters_->bytes().size() : 0;
  if (header.body_size != 0 || parameters.size() > size ||
      header.sequence > size - parameters.size()) {
    return bad_body();
  }
  if (place != nullptr) {
    *place = {.view = parameters_, .offset = header.sequence, .size = parameters.size()};
  } else {
    std::ranges::copy(parameters_->bytes().subspan(header.sequence, parameters.size()),
                      parameters.begin());
  }
  return {};
}

std::error_code PsLink::receive_text(const FrameHeader& header, std::string& text) {
  text.resize(header.body_size);
  return channel_->receive_body(std::as_writable_bytes(std::span(text)),
                                transfer_deadline(text.size()));
}

net::Refusal PsLink::receive_refusal(const FrameHeader& header) {
  return net::receive_refusal(*channel_, header, net::Clock::now() + task_.timeouts.silence);
}

void PsLink::adopt_offer(const FrameHeader& header, std::span<const std::byte> body) {
  unshare();
  net::SharedOffer offer;
  if (!net::decode(body, offer)) {
    std::error_code error;  // whatever it is, frames will do
    parameters_ = net::SharedView::open(offer, run_.most_shared, error);
  }
  const bool has_slot = parameters_ &&
                        header.sequence % math::AlignedVector::kAlignmentBytes == 0 &&
                        parameters_->bytes().size() >= net::kAnswerSlotBytes &&
                        header.sequence <= parameters_->bytes().size() - net::kAnswerSlotBytes;
  if (header.sequence != 0 && !has_slot) {
    parameters_.reset();  // the ps would leave answers where we cannot look
  }
  answers_at_ = has_slot ? header.sequence : 0;
}

std::error_code PsLink::bad_body() noexcept {
  close();
  return net::WireError::kBadBody;
}

net::Deadline PsLink::transfer_deadline(std::size_t bytes) const {
  return net::Clock::now() + task_.timeouts.silence +
         std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

}  // namespace disttf::roles
