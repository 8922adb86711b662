#include "roles/trainer/shell/ps_client.h"

#include <algorithm>
#include <random>
#include <utility>

#include "roles/process/log.h"
#include "roles/run/outcome.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// Between attempts to reach a range that two ps host.
constexpr std::chrono::milliseconds kLongestPause{100};

}  // namespace

PsClient::PsClient(const Task& task, const StopSignal& stop)
    : task_(task),
      stop_(stop),
      pending_(task.cluster.ps.size()),
      places_(task.cluster.ps.size()),
      polled_(task.cluster.ps.size() + 1),
      backoff_(std::mt19937_64(std::random_device{}())) {
  links_.reserve(task.cluster.ps.size());
  for (std::size_t index = 0; index < task.cluster.ps.size(); ++index) {
    links_.emplace_back(task, stop, index, replicated_);
  }
}

// ---------------------------------------------------------------------------------------- a step

StepReply PsClient::push_pull(std::uint64_t sequence, std::span<float> parameters, bool cut,
                              const std::function<void()>& meanwhile) {
  const auto request_for = [&](const PsLink& link) {
    places_[link.index()] = {};
    PsRequest request = push_request(link, sequence, cut);
    request.destination =
        std::as_writable_bytes(parameters.subspan(link.range.begin, link.range.size()));
    request.place = &places_[link.index()];
    return request;
  };
  try {
    StepReply reply = exchange_all(request_for, meanwhile);
    reply.parameters = joined(parameters);
    return reply;
  } catch (const StateLost&) {
    return join_again(parameters);
  }
}

PsRequest PsClient::push_request(const PsLink& link, std::uint64_t sequence, bool cut) const {
  return {.header = {.kind = FrameKind::kPushPull,
                     .flags = cut ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                     .step = link.step,
                     .sequence = sequence,
                     .range_begin = link.range.begin,
                     .generation = link.generation()},
          .gradient = gradient_.subspan(link.range.begin, link.range.size()),
          .reply = FrameKind::kParameters};
}

bool PsClient::pushes_ahead() const noexcept {
  return std::ranges::any_of(links_, [](const PsLink& link) { return link.sends_ahead(); });
}

void PsClient::push_ahead(std::uint64_t sequence, bool cut, std::size_t ready) {
  for (PsLink& link : links_) {
    if (ready > link.range.begin) {
      link.send_ahead(push_request(link, sequence, cut),
                      std::min(ready, link.range.end) - link.range.begin);
    }
  }
}

std::span<const float> PsClient::joined(std::span<float> parameters) {
  if (std::ranges::all_of(places_, [](const auto& place) { return place.view != nullptr; })) {
    const std::span<const std::byte> window = windows_.over(places_);
    if (!window.empty()) {
      return {reinterpret_cast<const float*>(window.data()), parameters.size()};
    }
  }
  for (const PsLink& link : links_) {
    const net::JoinedView::Piece& place = places_[link.index()];
    if (place.view) {
      std::ranges::copy(place.view->bytes().subspan(place.offset, place.size),
                        std::as_writable_bytes(parameters.subspan(link.range.begin)).begin());
    }
  }
  return parameters;
}

StepReply PsClient::join_again(std::span<float> parameters) {
  log_warning("a ps was lost, or does not hold this step's state any more; joining the run again");
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if (pending_[index].state != Pending::State::kDone) {
      links_[index].close();
    }
  }
  return join(parameters);
}

void PsClient::push(std::uint64_t micro_batch) {
  for (PsLink& link : links_) {
    if (awaiting_ && pending_[link.index()].state == Pending::State::kDone) {
      continue;  // has made this step: would take the gradient for one of the next
    }
    const auto gradient = gradient_.subspan(link.range.begin, link.range.size());
    if (broken_ || link.tell({.kind = FrameKind::kPush,
                              .step = link.step,
                              .sequence = micro_batch,
                              .range_begin = link.range.begin,
                              .generation = link.generation()},
                             gradient)) {
      broken_ = true;
    }
  }
}

bool PsClient::await_step(std::uint64_t sequence, std::span<float> parameters, bool cut,
                          StepReply& reply, std::vector<std::uint64_t>& missing) {
  work_.clear();
  try {
    if (broken_) {
      throw StateLost();
    }
    if (!awaiting_) {
      begin_exchange();
    }
    for (std::size_t index = 0; index < links_.size() && !awaiting_; ++index) {
      const PsLink& link = links_[index];
      std::uint16_t flags = net::kFlagNext;
      flags |= cut ? std::uint16_t{net::kFlagCut} : std::uint16_t{0};
      pending_[index].request = {.header = {.kind = FrameKind::kPull,
                                            .flags = flags,
                                            .step = link.step,
                                            .sequence = sequence,
                                            .generation = link.generation()},
                                 .reply = FrameKind::kParameters,
                                 .destination = std::as_writable_bytes(
                                     parameters.subspan(link.range.begin, link.range.size()))};
      begin(index);
    }
    awaiting_ = true;
    if (!await_all()) {
      missing = work_;
      return false;
    }
    reply = outcome();
    if (!reply.same_step) {
      reply = join(parameters);  // it had nothing to do, and the others went on without it
    }
  } catch (const StateLost&) {
    broken_ = false;
    reply = join_again(parameters);
  }
  awaiting_ = false;
  return true;
}

// With kFlagPrevious: asks those that are ahead of the slowest ps for the step before.
StepReply PsClient::pull_once(std::span<float> parameters, std::uint16_t flags_of_ahead) {
  const std::uint64_t slowest =
      std::ranges::min_element(links_, {}, [](const PsLink& link) { return link.step; })->step;
  return exchange_all([&](const PsLink& link) {
    const std::uint16_t flags = link.step > slowest ? flags_of_ahead : std::uint16_t{0};
    return PsRequest{.header = {.kind = FrameKind::kPull, .flags = flags},
                     .reply = FrameKind::kParameters,
                     .destination = std::as_writable_bytes(
                         parameters.subspan(link.range.begin, link.range.size()))};
  });
}

StepReply PsClient::peek(std::span<float> parameters) {
  try {
    return pull_once(parameters);
  } catch (const StateLost&) {
    return join(parameters);
  }
}

template <typename RequestFor>
StepReply PsClient::exchange_all(RequestFor request_for, const std::function<void()>& meanwhile) {
  begin_exchange();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    pending_[index].request = request_for(links_[index]);
    begin(index);
  }
  if (meanwhile) {
    meanwhile();
  }
  static_cast<void>(await_all());
  return outcome();
}

StepReply PsClient::outcome() {
  StepReply outcome{.step = pending_.front().reply.step,
                    .generation = pending_.front().reply.generation,
                    .finished = (pending_.front().reply.flags & net::kFlagFinished) != 0,
                    .share = pending_.front().reply.sequence};
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const FrameHeader& reply = pending_[index].reply;
    outcome.same_step = outcome.same_step && reply.step == outcome.step;
    outcome.dropped += (reply.flags & net::kFlagDropped) != 0 ? 1 : 0;
  }
  return outcome;
}

std::vector<math::Range> PsClient::dropped_ranges() const {
  std::vector<math::Range> ranges;
  for (std::size_t index = 0; index < links_.size(); ++index) {
    if ((pending_[index].reply.flags & net::kFlagDropped) != 0) {
      ranges.push_back(links_[index].range);
    }
  }
  return ranges;
}

bool PsClient::await_all() {
  while (!std::ranges::all_of(pending_, &Pending::is_done)) {
    await_some();
    if (!work_.empty()) {
      return false;
    }
  }
  return true;
}

// Until something has come, or it is time to do something about a ps that was lost.
void PsClient::await_some() {
  check_awake();
  // Some may be overdue: a lost ps was being tried.
  const net::Deadline deadline = std::max(prepare_poll(), awake_.now());
  check_awake(deadline);
  static_cast<void>(
      wait_.wait_for_any(polled_, stop_.interrupt(), deadline, shared_ ? &lookout_ : nullptr));
  stop_.throw_if_stopped();
  check_awake();
  // One time for all: what came while a lost ps was being tried must be seen by the next poll
  // before its sender is called silent.
  const auto now = awake_.now();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const Pending& pending = pending_[index];
    if (pending.state == Pending::State::kWaiting &&
        (polled_[index].revents != 0 || is_answered(index) || now >= pending.silent_at)) {
      take(index);
    } else if (pending.state == Pending::State::kLost && now >= pending.retry_at) {
      retry(index);
    }
  }
}

bool PsClient::is_answered(std::size_t index) const noexcept { return links_[index].has_answer(); }

bool PsClient::AnswerLookout::sees() noexcept {
  for (std::size_t index = 0; index < client_.links_.size(); ++index) {
    if (client_.pending_[index].state == Pending::State::kWaiting && client_.is_answered(index)) {
      return true;
    }
  }
  return false;
}

void PsClient::AnswerLookout::set_asleep(bool asleep) noexcept {
  net::set_asleep(
      net::SleepWord(client_.shared_->bytes().subspan(client_.sleep_word(), net::kSleepWordBytes)),
      asleep);
}

void PsClient::check_awake(net::Deadline until) {
  const net::Clock::duration missed = awake_.missed(net::Clock::now(), until);
  if (missed == net::Clock::duration::zero()) {
    return;
  }
  for (Pending& pending : pending_) {
    if (pending.state == Pending::State::kWaiting) {
      pending.silent_at += missed;
    } else if (pending.state == Pending::State::kLost) {
      pending.lost_since += missed;
    }
  }
}

// Until when nothing has to be done unless something comes.
net::Deadline PsClient::prepare_poll() {
  auto deadline = net::Deadline::max();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const Pending& pending = pending_[index];
    const bool waits = pending.state == Pending::State::kWaiting;
    polled_[index] = {.fd = waits ? links_[index].fd() : -1, .events = POLLIN, .revents = 0};
    if (waits) {
      deadline = std::min(deadline, pending.silent_at);
    } else if (pending.state == Pending::State::kLost) {
      deadline = std::min(deadline, pending.retry_at);
    }
  }
  return deadline;
}

void PsClient::begin(std::size_t index) {
  Pending& pending = pending_[index];
  if (const auto error = links_[index].send(pending.request)) {
    lose(index, error);
    return;
  }
  pending.state = Pending::State::kWaiting;
  pending.silent_at = net::Clock::now() + task_.timeouts.silence;
}

// A ps that is waiting for other trainers says so with heartbeats: silence is death.
void PsClient::take(std::size_t index) {
  Pending& pending = pending_[index];
  if (polled_[index].revents == 0 && !is_answered(index)) {
    links_[index].close();
    lose(index, std::make_error_code(std::errc::timed_out));
    return;
  }
  bool is_reply = false;
  if (const auto error = links_[index].receive(pending.request, pending.reply, is_reply)) {
    lose(index, error);
  } else if (is_reply) {
    pending.state = Pending::State::kDone;
  } else {
    if (pending.reply.kind == FrameKind::kWork) {
      work_.push_back(pending.reply.sequence);
    }
    pending.silent_at = net::Clock::now() + task_.timeouts.silence;
  }
}

void PsClient::lose(std::size_t index, std::error_code error) {
  Pending& pending = pending_[index];
  if (!retries_) {
    log_warning(links_[index].name() + " was lost (" + error.message() + ")");
    links_[index].close();
    throw StateLost();  // it may lack any of this step's micro-batches
  }
  if (pending.state != Pending::State::kLost) {
    pending.state = Pending::State::kLost;
    pending.lost_since = net::Clock::now();
    log_warning(links_[index].name() + " was lost (" + error.message() + "); connecting again");
    backoff_.reset();
  }
  pending.error = error;
  // The other host of the range is there, and about to be made its primary.
  const auto longest = replicated_ ? kLongestPause : net::Backoff::kLongest;
  const auto now = net::Clock::now();
  // And when it is to be given up: whoever says so late is told by somebody else first.
  pending.retry_at =
      std::min(now + std::min(backoff_.next(), longest), std::max(now, given_up_at(pending)));
}

void PsClient::retry(std::size_t index) {
  Pending& pending = pending_[index];
  const net::Deadline given_up = given_up_at(pending);
  const auto now = awake_.now();
  if (now >= given_up) {
    throw Failure(kLostPeers, links_[index].name() + " has been gone for " +
                                  seconds_text(task_.timeouts.peer) + ": " +
                                  pending.error.message());
  }
  const auto attempted_until = std::min(given_up, now + attempt_limit(task_.timeouts.peer));
  check_awake(attempted_until);
  const auto error = links_[index].open(attempted_until);
  check_awake();
  if (error) {
    lose(index, error);
    return;
  }
  note_end(links_[index]);
  if (replicated_ && shared_) {
    if (const auto not_shared = share(links_[index])) {
      lose(index, not_shared);
      return;
    }
  }
  const auto gone =
      std::chrono::duration_cast<std::chrono::milliseconds>(net::Clock::now() - pending.lost_since);
  log_info(links_[index].host_name() + " is back after " + std::to_string(gone.count()) + " ms");
  begin(index);
}

std::vector<std::uint64_t> PsClient::acknowledged() const {
  std::vector<std::uint64_t> counts;
  for (const PsLink& link : links_) {
    counts.push_back(link.acknowledged);
  }
  return counts;
}

std::string PsClient::status(std::size_t ps_index) {
  std::string text;
  PsRequest request{
      .header = {.kind = FrameKind::kStatus}, .reply = FrameKind::kStatusReply, .text = &text};
  FrameHeader reply;
  if (links_[ps_index].exchange(request, reply)) {
    links_[ps_index].close();
    return {};
  }
  return text;
}

}  // namespace disttf::roles
