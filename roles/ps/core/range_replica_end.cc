// What trainers and the chief say of the end of a run. What that comes to, and in which order:
// run_end.h.
//
// SHUTDOWN names the generation of the result, and this range's step in it. Where two chiefs are
// alive for a while, the one that has been replaced may have set the ps to a state since, or they
// have: what a ps holds then is not the result, and is forgotten.
#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;

}  // namespace

BodyPlan RangeReplica::goodbye(ConnectionId id, Connection& from) {
  const FrameHeader& header = from.header;
  net::Goodbye request;
  if (const auto error = request.from_header(header)) {
    return refuse(id, from, kError, error.message());
  }
  const std::size_t rank = from.rank;
  if (verdict_) {  // it has failed: this is no end to be told of
    return refuse(id, from, kLostPeers, verdict_->sentence);
  }
  if (has_ended()) {
    out_.send(id, net::Ack{header.request_id}.to_header());
    return {};
  }
  if (is_finishing()) {
    end_.goodbye(rank, now_);
  } else if (!is_restored_ || header.generation != generation_ || !may_be_result()) {
    fence(id, header.request_id);  // it has the result of a state that is no more, or not this ps's
    return {};
  } else {
    TrainerRecord& record = trainers_[rank];
    if (rank != 0 && !record.done) {
      out_.info(from.peer + " said goodbye");
    }
    record.done = true;
    end_.goodbye(rank, now_);
    answer_waiting();
  }
  wait_for_answer(rank, id, request);
  check_end(now_);
  return {};
}

// In strict mode nothing but the last step's parameters is, and they are the same in every state.
bool RangeReplica::may_be_result() const {
  return !shard_->config().every_gradient_counts() || shard_->finished();
}

BodyPlan RangeReplica::shutdown(ConnectionId id, Connection& from) {
  if (from.rank != 0) {
    return refuse(id, from, kError, "only the chief says that the run is over");
  }
  net::Shutdown request;
  if (const auto error = request.from_header(from.header)) {
    return refuse(id, from, kError, error.message());
  }
  if (verdict_) {
    return refuse(id, from, kLostPeers, verdict_->sentence);
  }
  out_.send(id, net::Ack{request.request_id}.to_header());
  if (is_finishing()) {
    return {};
  }
  // The result is of this generation. Where every gradient counts, that of any other is the same.
  const net::Generation result = request.generation;
  const bool is_other = result != generation_ ||
                        (request.step != 0 && is_restored_ && request.step != shard_->step());
  if (!is_restored_ || !may_be_result() ||
      (!shard_->config().every_gradient_counts() && is_other)) {
    drop_shard();          // not restored yet, or set back since: what is in it is nobody's
    generation_ = result;  // for a chief that comes late, and tells the others
  }
  end_.shut_down();
  if (shard_) {
    out_.info("the run is over after step " + std::to_string(shard_->step()));
  } else {
    out_.info("the run is over; this task holds nothing of it");
    fence_waiting();  // there is nothing here to answer with
  }
  answer_waiting();
  return {};
}

void RangeReplica::check_end(Clock::time_point now) {
  now_ = now;
  if (awaits_state() || has_ended()) {
    return;
  }
  const TrainerRecord& chief = trainers_[0];
  if (chief.waiting && chief.waiting->is<net::Goodbye>()) {
    answer_waiting();  // its time may have come without anything else that happens
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

// What waits for a step of a state that is no more, or for an answer that there will not be.
void RangeReplica::fence_waiting() {
  for (TrainerRecord& record : trainers_.records()) {
    if (!record.waiting) {
      continue;
    }
    const bool asks_for_what_is =
        record.waiting->is<net::GetConfig>() || record.waiting->is<net::Pull>();
    if (!shard_ || !asks_for_what_is) {
      fence(record.waiting->connection, record.waiting->id());
      record.waiting.reset();
    }
  }
}

}  // namespace disttf::roles
