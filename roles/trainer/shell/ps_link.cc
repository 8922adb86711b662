#include "roles/trainer/shell/ps_link.h"

#include <utility>

#include "math/random.h"
#include "net/tcp/dial.h"
#include "run/process/log.h"
#include "run/process/machine.h"
#include "run/process/ps_channel.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// Below this size several writes cost more than they gain: a megabyte, or a millisecond at 10
// Gbit/s.
constexpr std::size_t kLeastAheadBytes = std::size_t{1} << 20U;

// Each pair of trainer and ps has its own sequence of faults.
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
      ps_index_(ps_index),
      name_(describe(task.cluster, {.job = net::Job::kPs, .index = ps_index})),
      meters_(trainer_meters(task)) {
  if (task.faults.per_1000 > 0) {
    faults_.emplace(fault_options(task, ps_index, name_));
  }
}

DialAnswer PsLink::open(const Dial& dial, std::uint64_t incarnation) {
  net::OpenedChannel opened =
      net::open_channel(task_.cluster.address_of(dial.host),
                        {.cluster = net::hash_of(task_.cluster),
                         .from = task_.self,
                         .to = dial.host,
                         .purpose = net::ChannelPurpose::kStep,
                         .replica = dial.replica,
                         .incarnation = incarnation,
                         .last = dial.last},
                        stop_.interrupt(), dial.until, task_.credentials.get());
  stop_.throw_if_stopped();
  if (opened.error == net::WireError::kRefused) {
    return std::move(opened.refusal);
  }
  // Out of descriptors: that is a fault of this machine, not of the ps.
  throw_if_out_of_descriptors(opened.error, "connect to " + name_);
  if (opened.error) {
    return opened.error;
  }
  channel_ = faults_ ? faults_->wrap(std::move(opened.channel), stop_.interrupt())
                     : std::move(opened.channel);
  carry();
  // The first connection is not a reconnection.
  if (std::exchange(was_open_, true) && meters_ != nullptr) {
    meters_->reconnects.add();
  }
  return opened.welcome;
}

void PsLink::prepare(const Run& run) {
  run_ = run;
  if (channel_) {
    carry();
  }
}

void PsLink::carry() {
  // How tensors travel is agreed on anew for each channel.
  is_settled_ = false;
  if (run_.memory != nullptr) {
    // Injected faults are faults of frames, so tensors must travel in frames.
    const auto number = faults_ ? std::nullopt : std::optional(ps_index_);
    channel_ = run_.memory->carry(std::move(channel_), number);
  }
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
  // A gradient is computed from the parameters of such a pull, so they may be rounded; other pulls
  // are exact.
  if (header.kind == FrameKind::kPull && (header.flags & net::kFlagNext) != 0 && !is_in_place()) {
    header.flags |= tensor_flags(run_.wire);
  }
  return transmit(header, body, header.kind == FrameKind::kRestore ? Codec::kF32 : Codec::kControl);
}

std::error_code PsLink::transmit(const FrameHeader& header, std::span<const std::byte> body,
                                 Codec codec) {
  if (codec != Codec::kMemory) {
    bytes_sent_ += net::kHeaderBytes + body.size();
  }
  if (meters_ != nullptr) {
    meters_->bytes.sent_frame(codec, body.size());
  }
  return channel_->send(header, body, transfer_deadline(task_, body.size()));
}

void PsLink::count_received(Codec codec, std::size_t bytes) noexcept {
  if (codec != Codec::kMemory) {
    bytes_received_ += net::kHeaderBytes + bytes;
  }
  if (meters_ != nullptr) {
    meters_->bytes.received(codec, bytes);
  }
}

std::error_code PsLink::push(FrameHeader header, std::span<const float> gradient) {
  if (!is_open()) {
    return std::make_error_code(std::errc::not_connected);
  }
  // Only memory that the ps has mapped can be read in place.
  if (is_in_place() && run_.memory->holds(std::as_bytes(gradient))) {
    return transmit(header, std::as_bytes(gradient), Codec::kMemory);
  }
  header.flags |= gradient_flags(run_.wire);
  return transmit(header, pack_gradient(run_.wire, gradient, packed_), codec_of(header.flags));
}

std::error_code PsLink::settle() {
  if (!is_open()) {
    return std::make_error_code(std::errc::not_connected);
  }
  is_settled_ = true;
  const std::error_code error = channel_->agree(run_.most_placed, settle_until());
  // It stays true: that ps may keep the memory mapped.
  was_in_place_ = was_in_place_ || is_in_place();
  return error;
}

std::error_code PsLink::ask(net::PeerDiscovery& discovery) {
  std::optional<FrameHeader> answer;
  const auto error = channel_->ask(discovery.to_header(), answer, settle_until());
  discovery = {};
  return error || !answer ? error : discovery.from_header(*answer);
}

bool PsLink::sends_ahead() const noexcept {
  // A packed gradient is made from all of it, so no part of it can be sent ahead.
  return is_open() && is_settled() && !is_in_place() && gradient_flags(run_.wire) == 0 &&
         run_.range.size() * sizeof(float) >= kLeastAheadBytes;
}

void PsLink::push_ahead(const FrameHeader& header, std::span<const float> gradient,
                        std::size_t ready) {
  // An error here recurs in push(), which handles it.
  static_cast<void>(channel_->send_ahead(header, std::as_bytes(gradient), ready * sizeof(float)));
}

// ----------------------------------------------------------------------------------------- replies

std::error_code PsLink::receive_header(FrameHeader& header, net::Deadline now) {
  if (meters_ != nullptr) {
    meters_->bytes.received_header();
  }
  return channel_->receive_header(header, now + task_.timeouts.heartbeat_timeout);
}

std::error_code PsLink::receive_parameters(const FrameHeader& header, std::span<float> parameters,
                                           net::BodyLocation* place) {
  const std::span<std::byte> bytes = std::as_writable_bytes(parameters);
  // Cleared first: an old location must not be used if this answer comes as a frame.
  if (place != nullptr) {
    *place = {};
  }
  if ((header.flags & tensor_flags(run_.wire)) != 0) {
    return receive_rounded(header.body_size, parameters);
  }
  // The size is checked before any byte is received: the body would not fit.
  if (header.body_size != bytes.size()) {
    return bad_body();
  }
  if (place != nullptr) {
    *place = channel_->body_location();
    if (place->view) {
      count_received(Codec::kMemory, bytes.size());
      return {};
    }
  }
  count_received(Codec::kF32, bytes.size());
  return channel_->receive_body(bytes, transfer_deadline(task_, bytes.size()));
}

std::error_code PsLink::receive_rounded(std::uint64_t size, std::span<float> parameters) {
  if (size != tensor_bytes(run_.wire, parameters.size())) {
    return bad_body();
  }
  count_received(codec_of(tensor_flags(run_.wire)), size);
  packed_.resize(size);
  if (const auto error = channel_->receive_body(packed_, transfer_deadline(task_, size))) {
    return error;
  }
  unpack_tensor(run_.wire, packed_, parameters);
  return {};
}

std::error_code PsLink::receive_text(const FrameHeader& header, std::string& text) {
  count_received(Codec::kControl, header.body_size);
  return net::receive_text(*channel_, header.body_size, transfer_deadline(task_, header.body_size),
                           text);
}

net::Refusal PsLink::receive_refusal(const FrameHeader& header) {
  return net::receive_refusal(*channel_, header,
                              net::Clock::now() + task_.timeouts.heartbeat_timeout);
}

std::error_code PsLink::bad_body() noexcept {
  // Closed, since the rest of the stream cannot be read.
  close();
  return net::WireError::kBadBody;
}

}  // namespace disttf::roles
