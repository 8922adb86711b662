// How a trainer comes to the run's state: before the first step, and again when a ps lost its own.
#include <algorithm>
#include <random>
#include <utility>

#include "roles/process/log.h"
#include "roles/process/machine.h"
#include "roles/process/shared_limits.h"
#include "roles/run/outcome.h"
#include "roles/trainer/shell/ps_client.h"

namespace disttf::roles {

using net::FrameHeader;
using net::FrameKind;

namespace {

constexpr std::size_t kLineBytes = math::AlignedVector::kAlignmentBytes;

// The end of the cache line in which so many bytes end.
std::size_t line_end(std::size_t bytes) {
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace

// ------------------------------------------------------------------------- before the first step

bool PsClient::connect() {
  try {
    open_all(task_.timeouts.start, "waited ");
  } catch (const RunOver&) {
  }
  return over_;
}

void PsClient::note_end(const PsLink& link) noexcept {
  over_ = over_ || link.state() == net::ShardState::kFinished;
}

// Throws RunOver where some of the ps cannot be reached and another says that the run is over.
void PsClient::open_all(std::chrono::seconds limit, const char* sentence) {
  net::FreezeWatch awake;
  auto deadline = awake.now() + limit;
  backoff_.reset();
  while (true) {
    std::string missing;
    for (PsLink& link : links_) {
      deadline += awake.missed(net::Clock::now());
      const auto attempted_until =
          std::clamp(deadline, awake.now(), awake.now() + attempt_limit(limit));
      deadline += awake.missed(net::Clock::now(), attempted_until);
      const auto error = link.open(attempted_until);
      deadline += awake.missed(net::Clock::now());
      if (error) {
        missing += (missing.empty() ? "" : ", ") + link.name() + ": " + error.message();
      }
      note_end(link);
    }
    if (missing.empty()) {
      return;
    }
    if (over_) {
      throw RunOver();
    }
    if (awake.now() >= deadline) {
      throw Failure(kLostPeers, sentence + seconds_text(limit) + " in vain for " + missing);
    }
    const auto paused_until = std::min(deadline, awake.now() + backoff_.next());
    deadline += awake.missed(net::Clock::now(), paused_until);
    stop_.interrupt().wait_until(paused_until);
    deadline += awake.missed(net::Clock::now());
    stop_.throw_if_stopped();
  }
}

std::string PsClient::get_config() {
  std::string text;
  PsRequest request{
      .header = {.kind = FrameKind::kGetConfig}, .reply = FrameKind::kConfig, .text = &text};
  FrameHeader reply;
  const auto asks_in_vain = [&] {
    try {
      return bool(links_.front().exchange(request, reply));
    } catch (const StateLost&) {  // it was told that the run is over before it knew of any
      return true;
    }
  };
  while (asks_in_vain()) {
    links_.front().close();
    open_all(task_.timeouts.peer, "ps 0 was lost before training began; waited ");
    if (over_) {
      throw RunOver();
    }
  }
  return text;
}

void PsClient::prepare(const Run& run) {
  const std::size_t size = run.size;
  strict_ = run.strict;
  retries_ = !run.elastic;
  std::error_code error;
  // Elastic: the gradient of a micro-batch is overwritten before the ps say that they have it.
  if (!run.elastic && task_.transport != Transport::kTcp) {
    // Behind the gradient, on a cache line of its own: the word that says whether this trainer
    // sleeps.
    shared_ = net::SharedMemory::create(line_end(size * sizeof(float)) + kLineBytes,
                                        random_incarnation(), error);
  }
  if (shared_) {
    gradient_ = {reinterpret_cast<float*>(shared_->bytes().data()), size};
  } else {
    unshared_ = math::AlignedVector(size);
    gradient_ = unshared_.span();
  }
  for (PsLink& link : links_) {
    link.range = math::shard_range(size, link.index(), links_.size());
    link.wire = run.wire;
    link.most_shared = most_shared_by_ps(link.range.size(), run.trainers);
  }
}

void PsClient::lead(std::string config_json, std::function<TrainingState()> provide) {
  config_json_ = std::move(config_json);
  provide_state_ = std::move(provide);
}

void PsClient::publish() {
  for (std::size_t index = links_.size(); index-- > 0;) {
    PsLink& link = links_[index];
    PsRequest request{.header = {.kind = FrameKind::kPublish},
                      .body = std::as_bytes(std::span(config_json_))};
    FrameHeader reply;
    if (link.exchange(request, reply)) {
      link.close();
      throw StateLost();
    }
  }
}

// Ps 0 comes last: when it is ready, all are.
void PsClient::restore(const TrainingState& state) {
  for (const PsLink& link : links_) {
    newest_generation_ = std::max(newest_generation_, link.generation());
  }
  const std::uint32_t generation = ++newest_generation_;
  for (std::size_t index = links_.size(); index-- > 0;) {
    PsLink& link = links_[index];
    const math::Range range = link.range;
    math::AlignedVector values((1 + state.optimizer.size()) * range.size());
    const auto slice = [range](const math::AlignedVector& whole) {
      return whole.span().subspan(range.begin, range.size());
    };
    float* to = std::ranges::copy(slice(state.parameters), values.data()).out;
    for (const TrainingState::Tensor& tensor : state.optimizer) {
      to = std::ranges::copy(slice(tensor.values), to).out;
    }
    PsRequest request{.header = {.kind = FrameKind::kRestore,
                                 .step = state.step,
                                 .range_begin = range.begin,
                                 .generation = generation},
                      .body = std::as_bytes(values.span())};
    link.set_generation(generation);  // also if the reply is lost: the next one must be above it
    FrameHeader reply;
    if (link.exchange(request, reply)) {
      link.close();
      throw StateLost();
    }
  }
}

// -------------------------------------------------------------------------------- joining the run

StepReply PsClient::pull(std::span<float> parameters) { return join(parameters); }

StepReply PsClient::join(std::span<float> parameters) {
  for (PsLink& link : links_) {
    link.unpin();
    link.unshare();  // a ps may hold its parameters elsewhere now
  }
  net::Backoff backoff(std::mt19937_64(std::random_device{}()));
  while (true) {
    const bool was_over = over_;
    try {
      open_all(task_.timeouts.peer, "waited ");
      if (over_ && (provide_state_ || !agree())) {
        throw RunOver();  // nobody sets the ps to one state any more
      }
      if (provide_state_) {
        publish();
        if (!agree()) {
          restore(provide_state_());
        }
      }
      StepReply reply = pull_once(parameters);
      if (strict_ && agree() && !reply.same_step) {
        reply = pull_once(parameters, net::kFlagPrevious);
      }
      if (agree() && (reply.same_step || !strict_)) {
        share_memory();
        for (PsLink& link : links_) {
          link.pin();
        }
        newest_generation_ = std::max(newest_generation_, reply.generation);
        reply.joined = true;
        reply.parameters = parameters;
        return reply;
      }
    } catch (const StateLost&) {
      close_all();
      if (was_over) {
        throw RunOver();  // a ps that holds nothing, and never will
      }
    }
    // The chief is at work on it. Its own end is found out by the ps, who tell everybody.
    stop_.interrupt().wait_until(net::Clock::now() + backoff.next());
    stop_.throw_if_stopped();
  }
}

// Throws StateLost when a ps is lost.
void PsClient::share_memory() {
  std::size_t sharing = 0;
  for (PsLink& link : links_) {
    if (shared_ && share(link)) {
      link.close();
      throw StateLost();
    }
    sharing += link.shares_memory() ? 1U : 0U;
    if (!link.shares_memory() && task_.transport == Transport::kSharedMemory) {
      throw Failure(kUsage, "--transport shm: no memory can be shared with " + link.name() +
                                "; allowed is auto, which then uses tcp");
    }
  }
  if (sharing_ != sharing && shared_) {
    sharing_ = sharing;
    log_debug("shares memory with " + std::to_string(sharing) + " of " +
              std::to_string(links_.size()) + " ps");
  }
}

std::size_t PsClient::sleep_word() const noexcept { return line_end(gradient_.size_bytes()); }

std::error_code PsClient::share(PsLink& link) { return link.share(shared_->offer(), sleep_word()); }

bool PsClient::agree() const {
  return std::all_of(links_.begin(), links_.end(), [this](const PsLink& link) {
    return link.state() != net::ShardState::kEmpty &&
           link.generation() == links_.front().generation();
  });
}

}  // namespace disttf::roles
