// Receives gradients from trainers. It validates a push by its header, chooses where its body goes,
// and hands it to the shard once it is complete, if the state is still the one that the gradient
// was computed from. For what the shard does with it see shard.h.
//
// Not thread-safe: the ps's only thread owns it. `now` of a call: as in range_replica.h.
#pragma once

#include <optional>
#include <string>

#include "net/wire/frame.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/step_times.h"
#include "roles/ps/core/trainer_answers.h"
#include "roles/run/task.h"

namespace disttf::roles {

class PushReceiver {
 public:
  // All must outlive this object.
  PushReceiver(const Task& task, RangeState& state, TrainerAnswers& answers, StepTimes& times,
               Outbox& out)
      : task_(task), state_(state), answers_(answers), times_(times), out_(out) {}

  // Handles the header of a PUSH_PULL or a PUSH. `in_place`: where the body lies, if it need not be
  // read.
  BodyPlan header(PeerConnection& from, const net::BodyInPlace& in_place, Clock::time_point now);
  // A part of the body has arrived. `part`: kGradient, kPackedGradient, kUnwantedGradient,
  // kFencedGradient or kOutdatedGradient.
  BodyPlan body(PeerConnection& from, PeerConnection::Part part, Clock::time_point now);

 private:
  // Returns what is wrong with the header of a push that is covered by a host group's sum.
  [[nodiscard]] std::optional<std::string> fault_in_sum(const PeerConnection& from) const;
  BodyPlan admit(PeerConnection& from, const net::BodyInPlace& in_place, Clock::time_point now);
  BodyPlan discard(PeerConnection& from, PeerConnection::Part part, Clock::time_point now);
  BodyPlan commit(PeerConnection& from, const net::BodyInPlace& in_place, Clock::time_point now);
  BodyPlan ended(PeerConnection& from, bool stands, Clock::time_point now);

  const Task& task_;
  RangeState& state_;
  TrainerAnswers& answers_;
  StepTimes& times_;
  Outbox& out_;
};

}  // namespace disttf::roles
