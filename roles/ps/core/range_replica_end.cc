// Frames from trainers and the chief about the end of a run. For the order of the end see
// run_end.h.
//
// SHUTDOWN names the generation of the result, and this range's step in it. While two chiefs are
// alive, either may have restored the ps since. The state of this ps is then not the result, and is
// dropped.
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

}  // namespace

BodyPlan RangeReplica::goodbye(PeerConnection& from) {
  const FrameHeader& header = from.header;
  net::Goodbye request;
  if (const auto error = request.from_header(header)) {
    return from.refuse(out_, kError, error.message());
  }
  const std::size_t rank = from.rank;
  if (verdict_) {  // the run has failed, so it has no regular end
    return from.refuse(out_, kLostPeers, verdict_->sentence);
  }
  // A repeated GOODBYE, whose answer was lost.
  if (has_ended()) {
    out_.send(from.id, net::Ack{header.request_id}.to_header());
    return {};
  }
  if (is_finishing()) {
    end_.goodbye(rank, now_);
  } else if (!state_.is_restored() || header.generation != state_.generation() ||
             !state_.may_be_result()) {
    // Its result is of a replaced state, or not of this ps's state.
    answers_.fence(from.id, header.request_id);
    return {};
  } else {
    TrainerRecord& record = trainers_[rank];
    if (rank != 0 && !record.done) {
      out_.info(from.peer + " said goodbye");
    }
    record.done = true;
    end_.goodbye(rank, now_);
    if (const RunConfig& config = state_.shard()->config();
        config.sync_replicas && !config.every_gradient_counts()) {
      state_.shard()->conclude();
    }
    answers_.answer_waiting(now_);
  }
  answers_.wait(rank, from.id, request, now_);
  check_end(now_);
  return {};
}

BodyPlan RangeReplica::shutdown(PeerConnection& from) {
  if (from.rank != 0) {
    return from.refuse(out_, kError, "only the chief says that the run is over");
  }
  net::Shutdown request;
  if (const auto error = request.from_header(from.header)) {
    return from.refuse(out_, kError, error.message());
  }
  if (verdict_) {
    return from.refuse(out_, kLostPeers, verdict_->sentence);
  }
  // Acknowledged also if the state here is not the result: the run is over all the same.
  out_.send(from.id, net::Ack{request.request_id}.to_header());
  // A GOODBYE after SHUTDOWN: step 4 of run_end.h.
  if (is_finishing()) {
    return {};
  }
  // The result is of this generation. If every gradient counts, the result of any other generation
  // is the same.
  const net::Generation result = request.generation;
  const bool is_other =
      result != state_.generation() ||
      (request.step != 0 && state_.is_restored() && request.step != state_.shard()->step());
  if (!state_.is_restored() || !state_.may_be_result() ||
      (!state_.shard()->config().every_gradient_counts() && is_other)) {
    state_.drop_for(result);  // not restored yet, or rolled back since: the state belongs to no run
    count_needed();
  }
  // From here on nothing is undone: a later chief finds the run over.
  end_.shut_down();
  if (state_.shard()) {
    out_.info("the run is over after step " + std::to_string(state_.shard()->step()));
  } else {
    out_.info("the run is over; this task holds nothing of it");
    answers_.fence_waiting();  // there is no state to answer with
  }
  answers_.answer_waiting(now_);
  serve_evaluators();
  return {};
}

void RangeReplica::check_end(Clock::time_point now) {
  now_ = now;
  if (awaits_state() || has_ended()) {
    return;
  }
  const TrainerRecord& chief = trainers_[0];
  if (chief.waiting && chief.waiting->is<net::Goodbye>()) {
    answers_.answer_waiting(now_);  // its time may have come without another event
  }
  switch (end_.due(trainers_, now)) {
    case RunEnd::Due::kNotYet:
      break;
    case RunEnd::Due::kChiefLeaves:
      end(chief.step);
      break;
    case RunEnd::Due::kChiefIsGone:
      out_.info("the run is over, and the chief has been gone for " +
                seconds_text(task_.timeouts.peer));
      end(0);
      break;
  }
}

void RangeReplica::end_now(Clock::time_point now) {
  now_ = now;
  end(trainers_[0].step);
}

}  // namespace disttf::roles
