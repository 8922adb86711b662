// The primary's side of a range with replicas. It sends the whole state (FILL) and then each update
// (UPDATE) to the other host, and tracks what that host has acknowledged. For the other side see
// backup_receiver.h; for the numbers of entries see replication_log.h.
//
// Not thread-safe: the ps's only thread owns it.
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

  // This host becomes the primary; the chief may choose the other host; the chief will not choose
  // it any more. See ReplicationLog.
  void begin(bool paired) noexcept { log_.begin(paired); }
  void pair() noexcept { log_.pair(); }
  void go_alone() noexcept { log_.go_alone(); }

  // The other host was reached over this connection. Sends it a copy of the current state; updates
  // that follow are applied to that copy. `view`: the newest view of this host. REQUIRES: there is
  // a state, and no other connection to that host.
  void fill(ConnectionId to, const net::ViewNumber& view);
  // Sends an update. To be called before the parameters change.
  void forward(const ShardUpdate& update);
  // Sends the best evaluation that the chief has reported. It is not acknowledged: it precedes all
  // later updates on the connection, so the other host has none of them without it.
  void send_best();
  // The run ends before its last step, with the current state. The other host must acknowledge this
  // before a trainer learns of it, be it by an answer or by the news that its gradient came too
  // late. A failover to a host without it would accept gradients again.
  void conclude();
  // The result of a frame from the other host.
  enum class Heard : std::uint8_t {
    kNothing,
    kAck,        // it has more
    kCompleted,  // the same, and it now has everything
    kNonsense,
  };
  [[nodiscard]] Heard heard(const net::FrameHeader& header);
  // The update of this entry lies in memory that outlives this process, so it is durable at the
  // backup. (The acknowledgement still arrives.)
  void gave(ConnectionId to, ReplicationLog::Index entry) noexcept {
    if (to == connection_) {
      log_.handed_off(entry);
    }
  }
  void send_heartbeat();
  // Closes the connection, if there is one. Returns whether there was one.
  bool lose();
  // The run is over for the range: notifies the other host, and closes the connection after that.
  // Returns the connection, 0 if there is none.
  ConnectionId end();

  // Returns the connection, 0 if there is none.
  [[nodiscard]] ConnectionId connection() const noexcept { return connection_; }
  // Returns the newest entry. An answer requested now depends on it.
  [[nodiscard]] ReplicationLog::Index head() const noexcept { return log_.head(); }
  [[nodiscard]] ReplicationLog::Index lag() const noexcept { return log_.lag(); }
  [[nodiscard]] bool needs_acks() const noexcept { return log_.needs_acks(); }
  [[nodiscard]] bool is_complete() const noexcept { return log_.is_complete(); }
  // Returns whether the other host has everything that an answer reveals that was requested when
  // `head` was the newest entry. Always true if this host is not a primary. REQUIRES: there is a
  // shard.
  [[nodiscard]] bool is_safe(ReplicationLog::Index head) const;

 private:
  void send_state();

  const RangeState& state_;
  Outbox& out_;
  ConnectionId connection_ = 0;  // to the other host, that is being filled or is complete
  ReplicationLog log_;
};

}  // namespace disttf::roles
