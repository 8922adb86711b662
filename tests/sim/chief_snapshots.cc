// The simulated chief as roles/chief/shell/checkpointer.cc: brings snapshots home.
#include <chrono>
#include <cstring>
#include <utility>

#include "tests/sim/chief_process.h"

namespace disttf::sim {

using net::FrameKind;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kDialAttempt{2000};

}  // namespace

void ChiefProcess::took_cut(std::uint64_t sequence) {
  if (!job_) {
    job_ = CutJob{.sequence = sequence, .generation = reply_.generation};
    wake(*collector_);
  }
}

Routine<void> ChiefProcess::collect_cuts(Fiber& fiber) {
  while (true) {
    while (!job_) {
      co_await wait(fiber, Time::max());
    }
    saved_ = co_await collect(fiber, *job_);
    job_.reset();
  }
}

Routine<bool> ChiefProcess::collect(Fiber& fiber, CutJob job) {
  SavedState state;
  for (std::size_t index = 0; index < session_.ranges(); ++index) {
    Channel& channel = *cut_channels_[index];
    std::uint8_t replica = session_.range(index).replica();
    const net::TaskId host = roles::host_of_range(task_.cluster, index, replica);
    FiberProcess::open(channel, fiber, host.index,
                       {.cluster = {},
                        .from = task_.self,
                        .to = host,
                        .purpose = net::ChannelPurpose::kState,
                        .replica = replica,
                        .incarnation = task_.incarnation});
    Time deadline = now() + kDialAttempt;
    bool is_welcomed = false;
    std::optional<Frame> cut;
    while (!cut) {
      while (channel.is_open && !channel.has_frame() && now() < deadline) {
        co_await wait(fiber, deadline);
      }
      if (!channel.has_frame()) {
        close(channel);
        co_return false;
      }
      Frame frame = take(channel);
      if (!is_welcomed) {
        if (frame.header.kind != FrameKind::kWelcome) {
          close(channel);
          co_return false;
        }
        is_welcomed = true;
        deadline = now() + task_.timeouts.silence;
        network_.send(channel.id, *this,
                      {.kind = FrameKind::kGetCut,
                       .flags = job.now ? std::uint16_t{net::kFlagCut} : std::uint16_t{0},
                       .sequence = job.sequence,
                       .generation = job.generation});
        continue;
      }
      cut = std::move(frame);
    }
    close(channel);
    if (cut->header.kind != FrameKind::kCut) {
      co_return false;
    }
    const math::Range range = session_.range(index).range;
    const std::size_t tensors = 1 + (config_.optimizer.kind == math::OptimizerKind::kSgd    ? 0U
                                     : config_.optimizer.kind == math::OptimizerKind::kAdam ? 2U
                                                                                            : 1U);
    if (cut->body.size() != tensors * range.size() * sizeof(float)) {
      world_.violate(name() + " was sent a cut of another size");
      co_return false;
    }
    if (index == 0) {
      state.step = cut->header.step;
      state.tensors.assign(tensors, Values(size_));
    } else if (cut->header.step != state.step && config_.every_gradient_counts()) {
      co_return false;
    }
    for (std::size_t tensor = 0; tensor < tensors && range.size() != 0; ++tensor) {
      std::memcpy(state.tensors[tensor].data() + range.begin,
                  cut->body.data() + tensor * range.size() * sizeof(float),
                  range.size() * sizeof(float));
    }
  }
  world_.mark(Mark::kCutCollected);
  newest_ = state;
  if (disk_ != nullptr) {
    disk_->newest = std::move(state);
  }
  co_return true;
}

}  // namespace disttf::sim
