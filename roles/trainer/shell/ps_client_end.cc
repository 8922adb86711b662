// How a trainer leaves a run: the trainers' side of what is told in
// roles/ps/core/range_replica_end.cc.
#include <algorithm>
#include <array>
#include <exception>
#include <optional>
#include <vector>

#include "roles/process/log.h"
#include "roles/run/outcome.h"
#include "roles/trainer/shell/ps_client.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

// For a ps that was lost at the very end, and that nobody needs any more: to tell it so, should it
// come back.
constexpr std::chrono::seconds kFarewell{3};
// One ps has let this worker go: the others were told at the same time.
constexpr std::chrono::seconds kOthersFollow{1};

}  // namespace

// Throws StateLost where one does not hold the state of the result.
void PsClient::say_goodbye() {
  begin_exchange();
  for (std::size_t index = 0; index < links_.size(); ++index) {
    const PsLink& link = links_[index];
    pending_[index].request = {.header = {.kind = FrameKind::kGoodbye,
                                          .step = link.step,
                                          .generation = link.generation()}};
    begin(index);
  }
}

bool PsClient::await_end() {
  try {
    say_goodbye();
    while (!over_ && std::ranges::none_of(pending_, &Pending::is_done)) {
      await_some();
    }
  } catch (const StateLost&) {
    close_all();
    return over_;
  }
  // Whichever says so first: the result is durable then, whatever becomes of the others.
  over_ = true;
  await_other_releases(net::Clock::now() + kOthersFollow);
  return true;
}

// What is still under way is ended, so that the links can be used again.
void PsClient::await_other_releases(net::Deadline deadline) {
  for (std::size_t index = 0; index < links_.size(); ++index) {
    Pending& pending = pending_[index];
    PsLink& link = links_[index];
    if (!pending.is_done() && (pending.state != Pending::State::kWaiting ||
                               !answers_before(link, pending.request, pending.reply, deadline))) {
      link.close();
    }
  }
}

std::optional<std::uint64_t> PsClient::fetch_final(std::span<float> parameters) {
  std::optional<std::uint64_t> step;
  for (PsLink& link : links_) {
    link.unpin();
    link.unshare();
    PsRequest request{.header = {.kind = FrameKind::kPull},
                      .reply = FrameKind::kParameters,
                      .destination = std::as_writable_bytes(
                          parameters.subspan(link.range.begin, link.range.size()))};
    FrameHeader reply;
    const auto deadline = net::Clock::now() + kOthersFollow;
    try {
      if (link.open(deadline) || link.send(request)) {
        return std::nullopt;
      }
    } catch (const std::exception&) {
      return std::nullopt;
    }
    if (!answers_before(link, request, reply, deadline)) {
      return std::nullopt;
    }
    step = step.value_or(reply.step);
  }
  return step;
}

// False also where it is refused or fenced, or a signal comes: when the run is over, none of them
// matters any more. A body that has begun to come may take longer.
bool PsClient::answers_before(PsLink& link, const PsRequest& request, FrameHeader& reply,
                              net::Deadline deadline) {
  try {
    for (bool is_reply = false; !is_reply;) {
      if (net::wait_for(link.fd(), POLLIN, stop_.interrupt(), deadline) ||
          link.receive(request, reply, is_reply)) {
        return false;
      }
    }
  } catch (const std::exception&) {
    return false;
  }
  return true;
}

void PsClient::await_others(std::span<float> parameters) {
  while (true) {
    try {
      say_goodbye();
      static_cast<void>(await_all());
      return;
    } catch (const StateLost&) {
      static_cast<void>(join_again(parameters));
    }
  }
}

void PsClient::shutdown() {
  for (PsLink& link : links_) {
    link.unpin();
  }
  // All know that the run is over before the first of them ends: whoever is left then can tell.
  constexpr std::array kBoth = {FrameKind::kShutdown, FrameKind::kGoodbye};
  try {
    for (const FrameKind kind : kBoth) {
      tell_all_the_end(kind);
    }
  } catch (const Failure&) {  // a signal, after the result: nobody is waited for any more
    for (const FrameKind kind : kBoth) {
      for (PsLink& link : links_) {
        static_cast<void>(link.tell({.kind = kind}, {}));
      }
    }
  }
}

// To all, before the first answer is awaited; then again to those that were lost.
void PsClient::tell_all_the_end(FrameKind kind) {
  std::vector<PsLink*> untold;
  for (PsLink& link : links_) {
    Pending& pending = pending_[link.index()];
    pending.request = {.header = {.kind = kind}};
    pending.error = link.send(pending.request);
  }
  for (PsLink& link : links_) {
    Pending& pending = pending_[link.index()];
    if (pending.error || !hears_answer(link, pending.request)) {
      link.close();
      untold.push_back(&link);
    }
  }
  const auto deadline = net::Clock::now() + kFarewell;
  backoff_.reset();
  while (!untold.empty() && net::Clock::now() < deadline) {
    stop_.interrupt().wait_until(net::Clock::now() + backoff_.next());
    stop_.throw_if_stopped();
    std::erase_if(untold, [&](PsLink* link) { return tells_end_again(*link, kind, deadline); });
  }
  for (const PsLink* link : untold) {
    log_warning(link->name() + " did not confirm the end of the run");
  }
}

// False: it was lost, or has failed.
bool PsClient::hears_answer(PsLink& link, const PsRequest& request) {
  FrameHeader reply;
  try {
    for (bool is_reply = false; !is_reply;) {
      if (link.receive(request, reply, is_reply)) {
        return false;
      }
    }
  } catch (const StateLost&) {
    return false;
  } catch (const Failure& failure) {
    stop_.throw_if_stopped();
    log_warning(failure.what());
    return false;
  }
  return true;
}

// A ps that is another process now has to hear both.
bool PsClient::tells_end_again(PsLink& link, FrameKind kind, net::Deadline deadline) {
  try {
    if (link.open(deadline)) {
      return false;
    }
    for (const FrameKind each : {FrameKind::kShutdown, FrameKind::kGoodbye}) {
      PsRequest request{.header = {.kind = each}};
      if (link.send(request) || !hears_answer(link, request)) {
        link.close();
        return false;
      }
      if (each == kind) {
        break;
      }
    }
  } catch (const Failure& failure) {  // refused: it has failed, or knows a newer chief
    stop_.throw_if_stopped();
    log_warning(failure.what());
    return true;
  }
  return true;
}

void PsClient::close_all() {
  for (PsLink& link : links_) {
    note_end(link);
    link.close();  // a reply may be on its way over any of them, and each welcome tells the news
  }
}

}  // namespace disttf::roles
