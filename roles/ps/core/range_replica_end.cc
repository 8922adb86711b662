// The end of a run, as a ps sees it. In order:
//
//   1. A trainer has its result and says GOODBYE. It is done, and waits here: the state may still
//      be lost, and be made again from a cut, and then its gradients are needed once more.
//   2. The chief says GOODBYE as well, and is answered when all others are done, or have been away
//      for too long. The parameters are final then: it saves and prints them.
//   3. The chief says SHUTDOWN: the result is durable, the run is over. Nothing is taken back from
//      here on; whoever waits is answered, whoever comes late is told.
//   4. The chief says GOODBYE once more when all ps know: it needs nothing more. The ps ends when
//      the others have left, or have had their time to.
//
// A chief that dies after 3 is waited for, as it may have told only some of the ps; but the run is
// over, so a ps that waits in vain ends with 0.
#include <algorithm>

#include "roles/ps/core/range_replica.h"

namespace disttf::roles {
namespace {

using net::FrameHeader;
using net::FrameKind;
using std::chrono::milliseconds;

// How long a trainer that has just lost its connection, or was never seen, may take to come (back)
// while the chief waits to conclude; and, when the run is over, how long those that are still
// connected have to leave. A final evaluation on a busy core bounds it from below, the patience of
// whoever waits for the command to end from above.
constexpr milliseconds kGoodbyeGrace{1500};

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
    out_.send(id, {.kind = FrameKind::kAck, .request_id = header.request_id});
    return {};
  }
  if (is_finishing()) {
    if (rank == 0) {
      chief_leaves_ = now_;
    }
  } else if (phase_ == Phase::kWaitingForChief || header.generation != generation_ ||
             !may_be_result()) {
    fence(id, header.request_id);  // it has the result of a state that is no more, or not this ps's
    return {};
  } else {
    TrainerRecord& record = trainers_[rank];
    if (rank != 0 && !record.done) {
      out_.info(from.peer + " said goodbye");
    }
    record.done = true;
    if (rank == 0) {
      chief_done_ = now_;
    }
    end_steps();
  }
  wait_for_answer(rank, id, request);
  check_end(now_);
  return {};
}

// In strict mode nothing but the last step's parameters is.
bool RangeReplica::may_be_result() const {
  return !shard_->config().every_gradient_counts() || shard_->finished();
}

BodyPlan RangeReplica::shutdown(ConnectionId id, Connection& from) {
  if (from.rank != 0) {
    return refuse(id, from, kError, "only the chief says that the run is over");
  }
  if (verdict_) {
    return refuse(id, from, kLostPeers, verdict_->sentence);
  }
  out_.send(id, {.kind = FrameKind::kAck, .request_id = from.header.request_id});
  if (is_finishing()) {
    return {};
  }
  if (phase_ == Phase::kWaitingForChief || !may_be_result()) {
    shard_.reset();  // not restored yet, or set back since: what is in it is nobody's
    dealer_.reset();
  }
  phase_ = Phase::kFinishing;
  if (shard_) {
    out_.info("the run is over after step " + std::to_string(shard_->step()));
  } else {
    out_.info("the run is over; this task holds nothing of it");
    fence_waiting();  // there is nothing here to answer with
  }
  end_steps();
  return {};
}

// No more steps are waited for. Backup workers: here a gradient may have come late that counted at
// ps 0, so that the last step lacks one, and nobody is left to push it.
void RangeReplica::end_steps() {
  over_ = true;
  answer_waiting();
}

// Whether the GOODBYE of this trainer can be answered.
bool RangeReplica::may_leave(std::size_t rank) const {
  if (rank != 0) {
    return is_finishing();
  }
  if (is_finishing()) {
    return chief_leaves_ &&
           (trainers_.others_have_left() || now_ - *chief_leaves_ >= kGoodbyeGrace);
  }
  // Elastic: nobody has to come.
  return trainers_.others_are_done(now_, {.since = chief_done_,
                                          .absent = kGoodbyeGrace,
                                          .present = task_.timeouts.worker,
                                          .expects_all = !shard_->config().elastic()});
}

void RangeReplica::check_end(Clock::time_point now) {
  now_ = now;
  if (phase_ != Phase::kTraining && phase_ != Phase::kFinishing) {
    return;
  }
  const TrainerRecord& chief = trainers_[0];
  if (chief.waiting && chief.waiting->is<net::Goodbye>()) {
    answer_waiting();  // its time may have come without anything else that happens
  }
  if (phase_ != Phase::kFinishing) {
    return;
  }
  if (chief_leaves_ && may_leave(0)) {
    end(chief.step);
  } else if (!chief.alive() && now - chief.absent_since > task_.timeouts.peer) {
    out_.info("the run is over, and the chief has been gone for " +
              seconds_text(task_.timeouts.peer));
    end(0);
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
