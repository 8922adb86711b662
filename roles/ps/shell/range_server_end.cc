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

#include "roles/process/log.h"
#include "roles/ps/shell/ps_process.h"

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

bool RangeServer::handle_goodbye(const Connection& connection, std::size_t rank,
                                 const FrameHeader& header) {
  if (process_.verdict()) {  // it has failed: this is no end to be told of
    return refuse(connection, header, kLostPeers, process_.verdict()->sentence);
  }
  if (has_ended()) {
    connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
    return true;
  }
  if (is_finishing()) {
    if (rank == 0) {
      chief_leaves_ = Clock::now();
    }
  } else if (phase_ == Phase::kWaitingForChief || header.generation != generation_) {
    fence(connection, header);  // it has the result of a state that is no more
    return true;
  } else {
    TrainerRecord& record = trainers_[rank];
    if (rank != 0 && !record.done) {
      log_info(connection->peer_text() + " said goodbye");
    }
    record.done = true;
    if (rank == 0) {
      chief_done_ = Clock::now();
    }
    end_steps();
  }
  wait_for_answer(rank, connection, header);
  check_end();
  return true;
}

bool RangeServer::handle_shutdown(const Connection& connection, std::size_t rank,
                                  const FrameHeader& header) {
  if (rank != 0) {
    return refuse(connection, header, kError, "only the chief says that the run is over");
  }
  if (process_.verdict()) {
    return refuse(connection, header, kLostPeers, process_.verdict()->sentence);
  }
  connection->send({.kind = FrameKind::kAck, .request_id = header.request_id});
  if (is_finishing()) {
    return true;
  }
  if (phase_ == Phase::kWaitingForChief) {
    shard_.reset();  // published to and not restored: what is in it is nobody's
    answers_.reset();
  }
  phase_ = Phase::kFinishing;
  if (shard_) {
    log_info("the run is over after step " + std::to_string(shard_->step()));
  } else {
    log_info("the run is over; this task holds nothing of it");
    fence_waiting();  // there is nothing here to answer with
  }
  end_steps();
  return true;
}

// No more steps are waited for. Backup workers: here a gradient may have come late that counted at
// ps 0, so that the last step lacks one, and nobody is left to push it.
void RangeServer::end_steps() {
  over_ = true;
  answer_waiting();
}

// Whether the GOODBYE of this trainer can be answered.
bool RangeServer::may_leave(std::size_t rank) const {
  const auto now = Clock::now();
  if (rank != 0) {
    return is_finishing();
  }
  if (is_finishing()) {
    return chief_leaves_ && (trainers_.others_have_left() || now - *chief_leaves_ >= kGoodbyeGrace);
  }
  // Elastic: nobody has to come.
  return trainers_.others_are_done(now, {.since = chief_done_,
                                         .absent = kGoodbyeGrace,
                                         .present = task_.timeouts.worker,
                                         .expects_all = !shard_->config().elastic()});
}

void RangeServer::check_end() {
  if (phase_ != Phase::kTraining && phase_ != Phase::kFinishing) {
    return;
  }
  const TrainerRecord& chief = trainers_[0];
  if (chief.waiting && chief.waiting->header.kind == FrameKind::kGoodbye) {
    answer_waiting();  // its time may have come without anything else that happens
  }
  if (phase_ != Phase::kFinishing) {
    return;
  }
  if (chief_leaves_ && may_leave(0)) {
    end(chief.step);
  } else if (!chief.alive() && Clock::now() - chief.absent_since > task_.timeouts.peer) {
    log_info("the run is over, and the chief has been gone for " +
             seconds_text(task_.timeouts.peer));
    end(nullptr);
  }
}

void RangeServer::end_now() { end(trainers_[0].step); }

// What waits for a step of a state that is no more, or for an answer that there will not be.
void RangeServer::fence_waiting() {
  for (TrainerRecord& record : trainers_.records()) {
    if (!record.waiting) {
      continue;
    }
    const FrameHeader& header = record.waiting->header;
    const bool asks_for_what_is =
        header.kind == FrameKind::kGetConfig ||
        (header.kind == FrameKind::kPull && (header.flags & net::kFlagNext) == 0);
    if (!shard_ || !asks_for_what_is) {
      fence(record.waiting->connection, header);
      record.waiting.reset();
    }
  }
}

}  // namespace disttf::roles
