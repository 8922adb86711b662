// Replicas: frames from the chief about the replica role of this host, and from the range's other
// host. A primary fills and updates its backup (backup_sender.h); a backup takes its place when a
// view of the chief says so.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/range_host.h"

namespace disttf::roles {

class ReplicaRoles {
 public:
  // `host` must outlive it.
  explicit ReplicaRoles(RangeHost& host) : host_(host) {}

  // --- the chief

  BodyPlan view_header(PeerConnection& from);
  BodyPlan view_came(PeerConnection& from);
  // Drops the views of a chief whose run did not begin here, for a chief whose run has no replicas.
  // REQUIRES: RangeHost::is_empty().
  void leave_views();

  // --- the primary's side

  BodyPlan backup_header(PeerConnection& from);
  // Connecting to the other host has stopped.
  void stopped_connecting_to_backup() noexcept { connecting_to_backup_ = false; }
  // Returns whether this host is the primary and its copy is older than the last answer that the
  // trainer of this HELLO has received. It happens if the previous primary had gone on alone and
  // was lost together with the chief that had permitted it: the next chief then takes this copy for
  // a complete one.
  [[nodiscard]] bool lacks(const net::Hello& hello) const;
  // Drops that copy: the chief is to restore all ps in a new generation.
  void lose_state();

  // --- the backup's side

  BodyPlan primary_header(PeerConnection& from, const net::BodyInPlace& in_place);
  // The primary's configuration, or a part of another of its frames, has arrived.
  BodyPlan config_came(PeerConnection& from);
  BodyPlan part_came(PeerConnection& from);
  // Sets the function that drains what the primary has left in memory before this host closes that
  // connection itself to take its place; from then on the primary can hand off nothing more. (It
  // calls RangeReplica::header() from within another call.) To be set if the primary can hand off
  // updates.
  using TakeRest = std::function<void(ConnectionId)>;
  void take_rest_with(TakeRest take_rest) { take_rest_ = std::move(take_rest); }

 private:
  void take_view(const net::View& view);
  void become_primary(bool is_next);
  void become_backup();
  BodyPlan received(PeerConnection& from, const BackupReceiver::Outcome& outcome);
  BodyPlan refuse_primary(PeerConnection& from, const std::string& why);

  RangeHost& host_;
  TakeRest take_rest_;
  bool connecting_to_backup_ = false;  // primary: ConnectToBackup is under way
};

}  // namespace disttf::roles
