// Receives gradients from trainers: the way from a connection to the shard. It validates a push by
// its header, chooses where its body goes, and hands it to the shard once it is complete, if the
// state is still the one that the gradient was computed from. For what the shard does with it see
// shard.h.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <optional>
#include <string>

#include "net/wire/frame.h"
#include "roles/ps/core/connection_map.h"
#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/range_host.h"

namespace disttf::roles {

class PushReceiver {
 public:
  // Both must outlive this object.
  PushReceiver(RangeHost& host, ConnectionMap<PeerConnection>& connections)
      : host_(host), connections_(connections) {}

  // Returns whether this frame, or the part that has been read of the last one, is a push from the
  // step channel of a trainer's newest process. Such a frame concerns no other part of a ps, so
  // header() and body() may be called in place of PsCore's.
  [[nodiscard]] bool takes(ConnectionId id, const net::FrameHeader& header) const;
  [[nodiscard]] bool takes_body(ConnectionId id) const;

  // As RangeReplica's. REQUIRES: the connection is a trainer's step channel, and the header is that
  // of a PUSH_PULL or a PUSH; the part is one of a gradient.
  BodyPlan header(ConnectionId id, const net::FrameHeader& header, Clock::time_point now,
                  const net::BodyInPlace& in_place);
  BodyPlan body(ConnectionId id, Clock::time_point now);

 private:
  using Part = PeerConnection::Part;

  // Returns the connection if frames of its peer are to be handled; else nullptr.
  [[nodiscard]] const PeerConnection* trainer(ConnectionId id) const;
  BodyPlan push_came(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan part_came(PeerConnection& from, Part part);
  // The gradient may have completed the last step.
  BodyPlan took(BodyPlan plan);
  // Returns what is wrong with the header of a push that is covered by a host group's sum.
  [[nodiscard]] std::optional<std::string> fault_in_sum(const PeerConnection& from) const;
  BodyPlan admit(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan discard(PeerConnection& from, Part part);
  BodyPlan commit(PeerConnection& from, const net::BodyInPlace& in_place);
  BodyPlan ended(PeerConnection& from, bool stands);

  RangeHost& host_;
  ConnectionMap<PeerConnection>& connections_;
};

}  // namespace disttf::roles
