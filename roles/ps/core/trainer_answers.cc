#include "roles/ps/core/trainer_answers.h"

#include <algorithm>
#include <memory>
#include <variant>

#include "net/wire/bare_message.h"

namespace disttf::roles {
namespace {

MicroBatchScheduler::Activity activity_of(const TrainerRecord& record) {
  using enum MicroBatchScheduler::Activity;
  // Elastic: only a trainer that awaits a step is free for other micro-batches.
  const bool waits = record.waiting && record.waiting->is<net::AwaitStep>();
  return !record.present() ? kAway : waits ? kWaits : kComputes;
}

}  // namespace

void TrainerAnswers::fence(ConnectionId id, std::uint64_t request_id) {
  out_.send(id, net::Fenced{request_id}.to_header());
}

void TrainerAnswers::fence_waiting() {
  for (TrainerRecord& record : trainers_.records()) {
    if (!record.waiting) {
      continue;
    }
    // A configuration and a pull do not depend on the old state, so they keep waiting for the new
    // one.
    const bool asks_for_what_is =
        record.waiting->is<net::GetConfig>() || record.waiting->is<net::Pull>();
    if (!state_.shard() || !asks_for_what_is) {
      fence(record.waiting->connection, record.waiting->id());
      record.waiting.reset();
    }
  }
}

void TrainerAnswers::wait(std::size_t rank, ConnectionId id, const net::TrainerRequest& request,
                          Clock::time_point now) {
  if (trainers_[rank].step == id) {  // else a newer connection has replaced it
    trainers_[rank].waiting =
        WaitingRequest{.connection = id, .request = request, .log_index = backup_.head()};
    answer_after(rank, now);
    schedule_missing();
  }
}

void TrainerAnswers::answer_after(std::size_t rank, Clock::time_point now) {
  // With a thousand trainers, checking all of them for each push would cost more than the push.
  // releases() is unchanged, so only this trainer can have become answerable.
  if (state_.shard() && state_.shard()->releases() == looked_at_) {
    answer(rank, now);
  } else {
    answer_waiting(now);
  }
}

void TrainerAnswers::answer_waiting(Clock::time_point now) {
  // Read before the loop: an answer does not change it, and a later push compares with it.
  looked_at_ = state_.shard() ? state_.shard()->releases() : 0;
  for (std::size_t rank = 0; rank < trainers_.size(); ++rank) {
    answer(rank, now);
  }
}

void TrainerAnswers::answer(std::size_t rank, Clock::time_point now) {
  auto& waiting = trainers_[rank].waiting;
  if (!waiting || awaits_state() || !is_answerable(rank, *waiting, now) || !is_safe(*waiting)) {
    return;
  }
  const WaitingRequest request = *waiting;
  // Before the answer is sent: the trainer's next request may arrive in between.
  waiting.reset();
  if (MicroBatchScheduler* const scheduler = state_.scheduler()) {
    // The answer ends the step for this trainer, so what it still owes of it is void.
    scheduler->forget(rank);
  }
  if (request.is<net::GetConfig>() || is_of_another(request)) {
    send_config(request);
  } else if (request.is<net::Goodbye>()) {
    out_.send(request.connection, net::Ack{request.id()}.to_header());
  } else {
    send_parameters(rank, request);
  }
}

// A configuration and the answer to GOODBYE reveal no step.
bool TrainerAnswers::is_safe(const WaitingRequest& request) const {
  return request.is<net::GetConfig>() || request.is<net::Goodbye>() || is_of_another(request) ||
         backup_.is_safe(request.log_index);
}

bool TrainerAnswers::is_of_another(const WaitingRequest& request) const {
  const auto* const pull = std::get_if<net::Pull>(&request.request);
  return pull != nullptr && state_.is_of_another(pull->configuration);
}

bool TrainerAnswers::is_answerable(std::size_t rank, const WaitingRequest& waiting,
                                   Clock::time_point now) const {
  if (waiting.is<net::Goodbye>()) {
    return end_.may_leave(rank, trainers_, now);
  }
  // A trainer must not wait for a step that will not be made.
  if (end_.no_more_steps()) {
    return true;
  }
  if (waiting.is<net::PushPull>()) {
    return state_.shard()->answerable(rank);
  }
  if (const auto* const await = std::get_if<net::AwaitStep>(&waiting.request)) {
    return await->step < state_.shard()->step() || state_.shard()->finished();
  }
  return true;
}

std::span<const MicroBatchScheduler::Activity> TrainerAnswers::activities() {
  activities_.clear();
  for (const TrainerRecord& record : trainers_.records()) {
    activities_.push_back(activity_of(record));
  }
  return activities_;
}

void TrainerAnswers::share_step() {
  if (MicroBatchScheduler* const scheduler = state_.scheduler()) {
    scheduler->begin_step(activities());
  }
}

void TrainerAnswers::schedule_missing() {
  MicroBatchScheduler* const scheduler = state_.scheduler();
  if (scheduler == nullptr || !state_.is_restored() || end_.is_over() ||
      state_.shard()->finished()) {
    return;
  }
  const auto computes = [](const TrainerRecord& record) {
    return activity_of(record) == MicroBatchScheduler::Activity::kComputes;
  };
  // (Usually some trainer computes, and this finds it quickly.)
  if (std::ranges::any_of(trainers_.records(), computes) || !scheduler->is_stuck(activities())) {
    return;
  }
  for (const MicroBatchScheduler::Assignment& assignment :
       scheduler->assign(activities(), state_.shard()->policy().missing())) {
    const WaitingRequest& waiting = *trainers_[assignment.rank].waiting;
    out_.send(waiting.connection, net::Work{.request_id = waiting.id(),
                                            .step = state_.shard()->step(),
                                            .micro_batch = assignment.micro_batch,
                                            .generation = state_.generation()}
                                      .to_header());
  }
}

void TrainerAnswers::send_config(const WaitingRequest& request) {
  out_.send_text(request.connection, net::Config{request.id()}.to_header(), state_.shared_config());
}

void TrainerAnswers::send_parameters(std::size_t rank, const WaitingRequest& request) {
  const std::shared_ptr<Shard>& shard = state_.shard();
  Answer answer = shard->answer(rank, end_.no_more_steps());
  const auto* const pull = std::get_if<net::Pull>(&request.request);
  const auto* const await = std::get_if<net::AwaitStep>(&request.request);
  const auto* const push = std::get_if<net::PushPull>(&request.request);
  // The previous step's parameters are never the result, even of a run that is about to end: a
  // trainer that joins it computes the newest step's gradient anew.
  const auto previous = pull != nullptr && pull->previous ? shard->previous() : std::nullopt;
  if (previous) {
    answer = *previous;
  }
  net::Parameters parameters{.request_id = request.id(),
                             .step = answer.step,
                             .generation = state_.generation(),
                             .finished = answer.finished || (end_.no_more_steps() && !previous),
                             .dropped = answer.dropped && push != nullptr};
  if (const MicroBatchScheduler* const scheduler = state_.scheduler()) {
    parameters.share = scheduler->share_of(rank);
  } else {  // async: the number above which the trainer's next push is to be numbered
    parameters.counts_from = std::max(push != nullptr ? push->push : std::uint64_t{0},
                                      shard->policy().counts_from(rank));
  }
  std::span<const std::byte> body = std::as_bytes(answer.parameters);
  const unsigned form = push != nullptr ? push->form : await != nullptr ? await->form : 0U;
  if ((form & tensor_flags(shard->storage().wire())) != 0 && !parameters.finished) {
    parameters.form = tensor_flags(shard->storage().wire());
    body = shard->storage().as_sent(rank, answer.parameters);
  }
  if (push != nullptr && push->group_sum) {
    parameters.group_sum = true;
    body = {};
  }
  // Recorded until the trainer's next frame: a restore closes channels whose answers still borrow.
  trainers_[rank].answered = {.restores = state_.restores(), .step = answer.step};
  out_.add(SendFrame{.to = request.connection,
                     .header = parameters.to_header(),
                     .body = {},
                     .borrowed = body,
                     .owner = shard});
}

}  // namespace disttf::roles
