// Frames from trainers and the chief on a step channel: requests, and the end of the run.
// (push_receiver.h: gradients. run_start.h: a run begins and receives a state.) For the order of
// the end see run_end.h.
//
// SHUTDOWN names the generation of the result, and this range's step in it. While two chiefs are
// alive, either may have restored the ps since. The state of this ps is then not the result, and is
// dropped.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <string>

#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/range_host.h"

namespace disttf::roles {

class TrainerRequests {
 public:
  // `host` must outlive it.
  explicit TrainerRequests(RangeHost& host) : host_(host) {}

  // Handles a frame without a body.
  BodyPlan request(PeerConnection& from);
  // The trainer has this host's answer, and waits for other ps.
  BodyPlan return_beat(const PeerConnection& from);
  BodyPlan shutdown(PeerConnection& from);

 private:
  // Handles a request; refuses it if its header is malformed.
  template <typename Request>
  BodyPlan ask(PeerConnection& from);
  BodyPlan goodbye(PeerConnection& from);
  BodyPlan take_best(PeerConnection& from);
  BodyPlan answer_peer_discovery(PeerConnection& from);
  BodyPlan send_status(const PeerConnection& from);
  [[nodiscard]] std::string status() const;

  RangeHost& host_;
};

}  // namespace disttf::roles
