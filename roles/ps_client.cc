#include "roles/ps_client.h"

#include <algorithm>
#include <cstring>
#include <random>
#include <utility>

#include "roles/log.h"
#include "roles/outcome.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// What a link must carry at least, for the deadline of a whole transfer: 1 Mbit/s.
constexpr std::size_t kSlowestBytesPerSecond = 128 * 1024;
// One attempt to connect and shake hands; more attempts follow.
constexpr std::chrono::seconds kConnectAttempt{5};

std::string seconds_text(std::chrono::seconds seconds) {
  return std::to_string(seconds.count()) + " s";
}

}  // namespace

PsClient::PsClient(const Task& task, const StopSignal& stop)
    : task_(task), stop_(stop), backoff_(std::mt19937_64(std::random_device{}())) {
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    links_.push_back(Link{.ps = {.job = net::Job::kPs, .index = index}});
  }
  requests_.resize(links_.size());
  errors_.resize(links_.size());
}

net::ShardState PsClient::connect() {
  const auto deadline = net::Clock::now() + task_.timeouts.start;
  std::vector<std::error_code> errors(links_.size());
  while (true) {
    bool all = true;
    for (std::size_t index = 0; index < links_.size(); ++index) {
      if (!links_[index].channel) {
        errors[index] =
            open(links_[index], std::min(deadline, net::Clock::now() + kConnectAttempt));
        all = all && !errors[index];
      }
    }
    if (all) {
      break;
    }
    if (net::Clock::now() >= deadline) {
      std::string missing;
      for (std::size_t index = 0; index < links_.size(); ++index) {
        if (!links_[index].channel) {
          missing += (missing.empty() ? "" : ", ") + name_of(links_[index]) + ": " +
                     errors[index].message();
        }
      }
      throw Failure(kLostPeers,
                    "waited " + seconds_text(task_.timeouts.start) + " in vain for " + missing);
    }
    stop_.interrupt().wait_until(std::min(deadline, net::Clock::now() + backoff_.next()));
    stop_.throw_if_stopped();
  }
  backoff_.reset();
  auto state = net::ShardState::kReady;
  for (const Link& link : links_) {
    if (link.state == net::ShardState::kFinished) {
      return net::ShardState::kFinished;
    }
    if (link.state == net::ShardState::kEmpty) {
      state = net::ShardState::kEmpty;
    }
  }
  return state;
}

net::Hello PsClient::hello_to(const Link& link) const {
  return {.cluster = net::hash_of(task_.cluster),
          .from = task_.self,
          .to = link.ps,
          .purpose = net::ChannelPurpose::kStep,
          .incarnation = task_.incarnation};
}

// Refusals and a ps that has lost its state throw; everything else is worth another try.
std::error_code PsClient::open(Link& link, net::Deadline deadline) {
  net::OpenedChannel opened = net::open_channel(task_.cluster.address_of(link.ps), hello_to(link),
                                                stop_.interrupt(), deadline);
  stop_.throw_if_stopped();
  if (opened.error == net::WireError::kRefused) {
    throw_refused(link, opened.refusal);
  }
  if (opened.error) {
    return opened.error;
  }
  if (link.incarnation != 0 && link.incarnation != opened.welcome.incarnation) {
    throw Failure(kLostPeers, name_of(link) + " was restarted and has lost its parameters");
  }
  link.channel = std::move(opened.channel);
  link.incarnation = opened.welcome.incarnation;
  link.state = opened.welcome.state;
  link.generation = opened.welcome.generation;
  return {};
}

std::string PsClient::get_config() {
  std::string text;
  Request request{
      .header = {.kind = FrameKind::kGetConfig}, .reply = FrameKind::kConfig, .text = &text};
  links_.front().generation = exchange(links_.front(), request).generation;
  for (Link& link : links_) {
    link.generation = links_.front().generation;
  }
  return text;
}

void PsClient::set_parameter_count(std::size_t size) {
  for (Link& link : links_) {
    link.range = math::shard_range(size, link.ps.index, links_.size());
  }
}

void PsClient::publish(std::string_view config_json) {
  for (std::size_t index = links_.size(); index-- > 0;) {  // ps 0 last
    Link& link = links_[index];
    Request request{.header = {.kind = FrameKind::kPublish},
                    .body = std::as_bytes(std::span(config_json))};
    exchange(link, request);
  }
}

void PsClient::restore(std::span<const float> parameters, std::uint64_t step) {
  for (std::size_t index = links_.size(); index-- > 0;) {  // ps 0 last
    Link& link = links_[index];
    link.generation = 1;
    Request request{.header = {.kind = FrameKind::kRestore,
                               .step = step,
                               .range_begin = link.range.begin,
                               .generation = link.generation},
                    .body = std::as_bytes(parameters.subspan(link.range.begin, link.range.size()))};
    exchange(link, request);
    link.step = step;
  }
}

template <typename RequestFor>
StepReply PsClient::exchange_all(RequestFor request_for) {
  for (std::size_t index = 0; index < links_.size(); ++index) {
    requests_[index] = request_for(links_[index]);
    errors_[index] = send(links_[index], requests_[index]);
  }
  StepReply outcome;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Link& link = links_[index];
    FrameHeader reply;
    if (!errors_[index]) {
      errors_[index] = receive(link, requests_[index], reply);
    }
    if (errors_[index]) {
      reply = recover(link, requests_[index], errors_[index]);
    }
    link.step = reply.step;
    outcome.same_step = outcome.same_step && link.step == links_.front().step;
    outcome.dropped += (reply.flags & net::kFlagDropped) != 0 ? 1 : 0;
    if (index == 0) {
      outcome.step = reply.step;
      outcome.finished = (reply.flags & net::kFlagFinished) != 0;
    }
  }
  return outcome;
}

StepReply PsClient::pull(std::span<float> parameters) {
  return exchange_all([&](const Link& link) {
    return Request{.header = {.kind = FrameKind::kPull, .generation = link.generation},
                   .reply = FrameKind::kParameters,
                   .destination = std::as_writable_bytes(
                       parameters.subspan(link.range.begin, link.range.size()))};
  });
}

StepReply PsClient::push_pull(std::uint64_t sequence, std::span<const float> gradient,
                              std::span<float> parameters) {
  return exchange_all([&](const Link& link) {
    return Request{.header = {.kind = FrameKind::kPushPull,
                              .step = link.step,
                              .sequence = sequence,
                              .range_begin = link.range.begin,
                              .generation = link.generation},
                   .body = std::as_bytes(gradient.subspan(link.range.begin, link.range.size())),
                   .reply = FrameKind::kParameters,
                   .destination = std::as_writable_bytes(
                       parameters.subspan(link.range.begin, link.range.size()))};
  });
}

void PsClient::goodbye() {
  for (Link& link : links_) {
    Request request{.header = {.kind = FrameKind::kGoodbye}};
    if (!send(link, request)) {
      FrameHeader reply;
      // A ps that has ended already needs no goodbye.
      static_cast<void>(receive(link, request, reply));
    }
  }
}

void PsClient::shutdown() {
  for (Link& link : links_) {
    Request request{.header = {.kind = FrameKind::kShutdown}};
    errors_[link.ps.index] = send(link, request);
    requests_[link.ps.index] = request;
  }
  for (Link& link : links_) {
    FrameHeader reply;
    std::error_code& error = errors_[link.ps.index];
    if (!error) {
      error = receive(link, requests_[link.ps.index], reply);
    }
    if (error) {
      log_warning(name_of(link) + " did not confirm the end of the run: " + error.message());
    }
  }
}

std::string PsClient::status(std::size_t ps_index) {
  std::string text;
  Request request{
      .header = {.kind = FrameKind::kStatus}, .reply = FrameKind::kStatusReply, .text = &text};
  exchange(links_[ps_index], request);
  return text;
}

FrameHeader PsClient::exchange(Link& link, Request& request) {
  FrameHeader reply;
  std::error_code error = send(link, request);
  if (!error) {
    error = receive(link, request, reply);
  }
  return error ? recover(link, request, error) : reply;
}

std::error_code PsClient::send(Link& link, Request& request) {
  stop_.throw_if_stopped();
  if (!link.channel || !link.channel->is_open()) {
    return std::make_error_code(std::errc::not_connected);
  }
  request.header.request_id = next_request_id_++;
  return link.channel->send(request.header, request.body, transfer_deadline(request.body.size()));
}

// A ps that is waiting for other trainers says so with heartbeats: silence is death.
std::error_code PsClient::receive(Link& link, const Request& request, FrameHeader& reply) {
  do {
    const auto error =
        link.channel->receive_header(reply, net::Clock::now() + task_.timeouts.silence);
    stop_.throw_if_stopped();
    if (error) {
      return error;
    }
    if (reply.kind == FrameKind::kRefused) {
      throw_refused(link, net::receive_refusal(*link.channel, reply,
                                               net::Clock::now() + task_.timeouts.silence));
    }
  } while (reply.kind == FrameKind::kHeartbeat && reply.body_size == 0);
  if (reply.kind != request.reply || reply.request_id != request.header.request_id) {
    link.channel->close();
    return net::WireError::kUnexpected;
  }
  if (request.text != nullptr) {
    return receive_control_body(link, reply.body_size, *request.text);
  }
  if (reply.body_size != request.destination.size()) {
    link.channel->close();
    return net::WireError::kBadBody;
  }
  return link.channel->receive_body(request.destination,
                                    transfer_deadline(request.destination.size()));
}

std::error_code PsClient::receive_control_body(Link& link, std::uint64_t size, std::string& text) {
  if (size > net::kMaxControlBodyBytes) {
    link.channel->close();
    return net::WireError::kBodyTooLarge;
  }
  text.resize(size);
  return link.channel->receive_body(std::as_writable_bytes(std::span(text)),
                                    transfer_deadline(size));
}

FrameHeader PsClient::recover(Link& link, Request& request, std::error_code error) {
  const auto lost_since = net::Clock::now();
  log_warning(name_of(link) + " was lost (" + error.message() + "); connecting again");
  backoff_.reset();
  while (true) {
    stop_.throw_if_stopped();
    const auto now = net::Clock::now();
    if (now - lost_since >= task_.timeouts.peer) {
      throw Failure(kLostPeers, name_of(link) + " has been gone for " +
                                    seconds_text(task_.timeouts.peer) + ": " + error.message());
    }
    error = open(link, std::min(lost_since + task_.timeouts.peer, now + kConnectAttempt));
    FrameHeader reply;
    if (!error) {
      error = send(link, request);
    }
    if (!error) {
      error = receive(link, request, reply);
    }
    if (!error) {
      log_info(name_of(link) + " is back");
      return reply;
    }
    stop_.interrupt().wait_until(
        std::min(lost_since + task_.timeouts.peer, net::Clock::now() + backoff_.next()));
  }
}

net::Deadline PsClient::transfer_deadline(std::size_t bytes) const {
  return net::Clock::now() + task_.timeouts.silence +
         std::chrono::seconds(bytes / kSlowestBytesPerSecond);
}

void PsClient::throw_refused(const Link& link, const net::Refusal& refusal) const {
  // The code comes from a peer: only those that mean something here.
  const int code = refusal.exit_code == kUsage || refusal.exit_code == kLostPeers
                       ? refusal.exit_code
                       : static_cast<int>(kError);
  throw Failure(code, "refused by " + name_of(link) + ": " + refusal.sentence);
}

std::string PsClient::name_of(const Link& link) const { return describe(task_.cluster, link.ps); }

}  // namespace disttf::roles
