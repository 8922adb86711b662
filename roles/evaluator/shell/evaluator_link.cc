#include "roles/evaluator/shell/evaluator_link.h"

#include <chrono>
#include <utility>

#include "net/transport/peer.h"
#include "net/wire/bare_message.h"
#include "net/wire/cut_messages.h"
#include "net/wire/log_messages.h"
#include "net/wire/messages.h"
#include "roles/process/machine.h"
#include "roles/run/outcome.h"
#include "roles/trainer/shell/ps_link.h"

namespace disttf::roles {

using net::FrameHeader;

EvaluatorLink::EvaluatorLink(const Task& task, std::size_t ps_index,
                             const net::Interrupt& interrupt)
    : task_(task),
      interrupt_(interrupt),
      index_(ps_index),
      name_(describe(task.cluster, {.job = net::Job::kPs, .index = ps_index})) {}

net::Deadline EvaluatorLink::deadline_for(std::size_t bytes) const {
  return net::Clock::now() + task_.timeouts.silence +
         std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

std::error_code EvaluatorLink::connect_to(std::uint8_t replica) {
  const net::TaskId host = host_of_range(task_.cluster, index_, replica);
  auto opened = net::open_channel(task_.cluster.address_of(host),
                                  {.cluster = net::hash_of(task_.cluster),
                                   .from = task_.self,
                                   .to = host,
                                   .purpose = net::ChannelPurpose::kState,
                                   .replica = replica,
                                   .incarnation = task_.incarnation},
                                  interrupt_, deadline_for(0));
  throw_if_out_of_descriptors(opened.error, "connect to " + name_);
  if (opened.error == net::WireError::kRefused && opened.refusal.exit_code != kLostPeers) {
    throw Failure(opened.refusal.exit_code, opened.refusal.sentence);
  }
  channel_ = std::move(opened.channel);
  welcome_ = opened.welcome;
  return opened.error;
}

std::error_code EvaluatorLink::connect(bool is_replicated) {
  std::error_code error = connect_to(0);
  if (is_replicated && (error || welcome_.standing != net::Standing::kPrimary)) {
    error = connect_to(1);
    if (!error && welcome_.standing != net::Standing::kPrimary) {
      close();
      error = net::WireError::kUnexpected;
    }
  }
  return error;
}

std::error_code EvaluatorLink::get_config(std::string& json) {
  std::error_code error =
      channel_->send(net::GetConfig{++requests_}.to_header(), {}, deadline_for(0));
  FrameHeader header;
  if (!error) {
    error = channel_->receive_header(header, deadline_for(0));
  }
  json.clear();
  if (error || net::is_bodiless<net::Ack>(header)) {
    return error;
  }
  if (net::Config{}.from_header(header) || header.body_size > net::kMaxControlBodyBytes) {
    return unexpected(header);
  }
  json.resize(header.body_size);
  return channel_->receive_body(std::as_writable_bytes(std::span(json)), deadline_for(json.size()));
}

std::error_code EvaluatorLink::watch(std::uint64_t step) {
  return channel_->send(net::Watch{.request_id = ++requests_, .step = step}.to_header(), {},
                        deadline_for(0));
}

std::error_code EvaluatorLink::receive(math::Range range, std::span<float> place,
                                       std::optional<CutPlan::Part>& part, bool& has_nothing) {
  part.reset();
  FrameHeader header;
  if (const auto error = channel_->receive_header(header, deadline_for(0))) {
    return error;
  }
  if (net::is_bodiless<net::Heartbeat>(header)) {
    return {};
  }
  if (net::is_bodiless<net::Ack>(header)) {
    has_nothing = true;
    return {};
  }
  net::CutReply cut;
  if (cut.from_header(header) || cut.range_begin != range.begin ||
      header.body_size != place.size_bytes()) {
    return unexpected(header);
  }
  if (const auto error =
          channel_->receive_body(std::as_writable_bytes(place), deadline_for(header.body_size))) {
    return error;
  }
  part = CutPlan::Part{.step = cut.step, .generation = cut.generation, .is_last = cut.is_result};
  return {};
}

// A refusal says why the run has failed.
std::error_code EvaluatorLink::unexpected(const FrameHeader& header) {
  if (header.kind == net::FrameKind::kRefused) {
    const net::Refusal refusal = net::receive_refusal(*channel_, header, deadline_for(0));
    throw Failure(refusal.exit_code, refusal.sentence);
  }
  close();
  return net::WireError::kUnexpected;
}

}  // namespace disttf::roles
