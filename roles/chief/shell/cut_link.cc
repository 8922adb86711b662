#include "roles/chief/shell/cut_link.h"

#include <algorithm>
#include <stdexcept>

#include "net/transport/peer.h"
#include "net/wire/text.h"
#include "net/wire/write_cut.h"
#include "roles/process/machine.h"
#include "roles/trainer/shell/ps_link.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

bool has_lost_its_state(const net::OpenedChannel& opened) {
  return opened.error == std::errc::connection_refused ||
         opened.error == net::WireError::kRefused ||
         (!opened.error && opened.welcome.standing == net::Standing::kOnly &&
          opened.welcome.state == net::ShardState::kEmpty);
}

}  // namespace

CutLink::CutLink(const Task& task, std::size_t ps_index, const net::Interrupt& interrupt)
    : task_(task),
      interrupt_(interrupt),
      ps_{.job = net::Job::kPs, .index = ps_index},
      name_(describe(task.cluster, ps_)) {}

net::Deadline CutLink::deadline_for(std::size_t bytes, net::Deadline latest) const {
  return std::min(latest, net::Clock::now() + task_.timeouts.silence +
                              std::chrono::seconds(bytes / kSlowestBytesPerSecond));
}

std::error_code CutLink::open(const CutRequest& cut) {
  std::error_code error;
  bool is_lost = cut.now;
  for (const std::uint8_t replica : {std::uint8_t{0}, std::uint8_t{1}}) {
    const net::TaskId host = host_of_range(task_.cluster, ps_.index, replica);
    auto opened = net::open_channel(task_.cluster.address_of(host),
                                    {.cluster = net::hash_of(task_.cluster),
                                     .from = task_.self,
                                     .to = host,
                                     .purpose = net::ChannelPurpose::kState,
                                     .replica = replica,
                                     .incarnation = task_.incarnation},
                                    interrupt_, deadline_for(0, cut.deadline));
    throw_if_out_of_descriptors(opened.error, "connect to " + name_);
    is_lost = is_lost && has_lost_its_state(opened);
    const bool is_only = replica == 0 && opened.welcome.standing == net::Standing::kOnly;
    if (!is_lost && !opened.error &&
        (is_only || opened.welcome.standing == net::Standing::kPrimary)) {
      channel_ = std::move(opened.channel);
      return {};
    }
    error = opened.error ? opened.error
                         : std::make_error_code(std::errc::resource_unavailable_try_again);
    if (!cut.replicated) {
      break;
    }
  }
  if (is_lost && cut.again) {
    throw std::runtime_error(name_ + " is gone, and with it its part of the state");
  }
  return error;
}

std::error_code CutLink::ask(FrameKind kind, const CutRequest& cut, std::size_t body_bytes,
                             FrameHeader& reply) {
  const auto deadline = deadline_for(0, cut.deadline);
  std::error_code error =
      channel_->send({.kind = kind,
                      .flags = cut.now ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                      .sequence = cut.sequence,
                      .generation = cut.generation},
                     {}, deadline);
  if (!error) {
    error = channel_->receive_header(reply, deadline);
  }
  if (!error && (reply.kind != FrameKind::kCut || reply.body_size != body_bytes)) {
    channel_->close();
    return net::WireError::kUnexpected;  // kAck: it does not have it
  }
  return error;
}

std::error_code CutLink::find(const CutRequest& cut, std::uint64_t& step) {
  FrameHeader reply;
  const std::error_code error = ask(FrameKind::kFindCut, cut, 0, reply);
  step = reply.step;
  return error;
}

std::error_code CutLink::fetch(const CutRequest& cut, std::size_t range_begin,
                               std::span<const std::span<float>> places, std::uint64_t& step) {
  std::size_t bytes = 0;
  for (const std::span<float> place : places) {
    bytes += place.size_bytes();
  }
  FrameHeader reply;
  std::error_code error = ask(FrameKind::kGetCut, cut, bytes, reply);
  if (!error && reply.range_begin != range_begin) {
    channel_->close();
    error = net::WireError::kUnexpected;
  }
  step = reply.step;
  const auto deadline = deadline_for(bytes, cut.deadline);
  for (auto place = places.begin(); !error && place != places.end(); ++place) {
    error = channel_->receive_body(std::as_writable_bytes(*place), deadline);
  }
  return error;
}

std::error_code CutLink::start_writing(const CutRequest& cut, const SaveId& id) {
  const net::WriteCut order{.attempt = id.attempt,
                            .shard = static_cast<std::uint32_t>(ps_.index),
                            .shards = static_cast<std::uint32_t>(task_.cluster.ps.size())};
  return channel_->send({.kind = FrameKind::kWriteCut,
                         .step = id.step,
                         .sequence = cut.sequence,
                         .generation = cut.generation},
                        net::encode(order), deadline_for(0, cut.deadline));
}

ShardFile CutLink::await_written(net::Deadline deadline) {
  FrameHeader reply;
  std::string text;
  std::error_code error;
  do {
    error = channel_->receive_header(reply, deadline_for(0, deadline));
  } while (!error && reply.kind == FrameKind::kHeartbeat);  // it is still writing
  if (!error && (reply.kind == FrameKind::kWritten || reply.kind == FrameKind::kNotWritten)) {
    error = receive_text(reply.body_size, deadline_for(0, deadline), text);
  } else if (!error) {
    channel_->close();
    error = net::WireError::kUnexpected;  // kAck: it does not have the cut any more
  }
  if (error) {
    throw PsLost(name_ + " did not say that it had written its range: " + error.message());
  }
  if (reply.kind == FrameKind::kNotWritten) {
    throw std::runtime_error(name_ + " could not write its range: " + net::one_line(text));
  }
  try {
    return shard_file_from_json(text);
  } catch (const std::invalid_argument& wrong) {
    throw std::runtime_error(name_ + " says nonsense: " + wrong.what());
  }
}

std::error_code CutLink::receive_text(std::uint64_t size, net::Deadline deadline,
                                      std::string& text) {
  if (size > net::kMaxControlBodyBytes) {
    channel_->close();
    return net::WireError::kBodyTooLarge;
  }
  text.resize(size);
  return channel_->receive_body(std::as_writable_bytes(std::span(text)), deadline);
}

}  // namespace disttf::roles
