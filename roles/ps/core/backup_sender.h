// The primary's side of a range with replicas: fills the other host with the whole state (FILL),
// tells it each update (UPDATE), and knows what it has of that. What the other host does with them
// is backup_receiver.h; what the numbers of entries mean is replication_log.h.
//
// Not thread-safe: the ps's one thread owns it.
#pragma once

#include <cstdint>

#include "net/wire/frame.h"
#include "net/wire/replication.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/range_state.h"
#include "roles/ps/core/replication_log.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

class BackupSender {
 public:
  // Both must outlive it.
  BackupSender(const RangeState& state, Outbox& out) : state_(state), out_(out) {}

  // This host becomes the primary, the chief may choose the other one, and will not choose it any
  // more; as ReplicationLog's.
  void begin(bool paired) noexcept { log_.begin(paired); }
  void pair() noexcept { log_.pair(); }
  void go_alone() noexcept { log_.go_alone(); }

  // The other host was reached over this connection: sends it a copy of everything as it is now.
  // Updates that follow it there are made to it. `view`: that this host knows. REQUIRES: there is a
  // state, and no other connection to that host.
  void fill(ConnectionId to, const net::ViewNumber& view);
  // Of an update, before the parameters change.
  void forward(const ShardUpdate& update);
  // What the chief has said of the evaluations. It is not acknowledged: no step follows it that the
  // other host has, and this not.
  void tell_best();
  // The run has ended before its last step, with the state as it is. No answer says so, and none
  // that a gradient came too late, that the other host does not know of: in the primary's place it
  // would take gradients.
  void conclude();
  // What a frame of that host's comes to.
  enum class Heard : std::uint8_t {
    kNothing,
    kAck,        // it has more
    kCompleted,  // the same, and with that it has everything
    kNonsense,
  };
  [[nodiscard]] Heard heard(const net::FrameHeader& header);
  // The update of this entry was left where that host takes it also when this one is gone. (Its
  // acknowledgement comes all the same.)
  void gave(ConnectionId to, ReplicationLog::Index entry) noexcept {
    if (to == connection_) {
      log_.given(entry);
    }
  }
  void send_heartbeat();
  // The connection is closed, if there is one. True: it was.
  bool lose();
  // The run is over for the range: that host is told, and its connection closed after that. Returns
  // the connection, 0 if there is none.
  ConnectionId end();

  // The connection, 0 if there is none.
  [[nodiscard]] ConnectionId connection() const noexcept { return connection_; }
  // The newest entry; what an answer that is asked for now depends on.
  [[nodiscard]] ReplicationLog::Index head() const noexcept { return log_.head(); }
  [[nodiscard]] ReplicationLog::Index lag() const noexcept { return log_.lag(); }
  [[nodiscard]] bool needs_acks() const noexcept { return log_.needs_acks(); }
  [[nodiscard]] bool is_complete() const noexcept { return log_.is_complete(); }
  // Whether the other host has what an answer tells that was asked for when `head` was the newest
  // entry. Always, where this host is no primary. REQUIRES: there is a shard.
  [[nodiscard]] bool is_safe(ReplicationLog::Index head) const;

 private:
  void send_state();

  const RangeState& state_;
  Outbox& out_;
  ConnectionId connection_ = 0;  // to the other host, that is being filled or is complete
  ReplicationLog log_;
};

}  // namespace disttf::roles
