// Frames from the chief that begin a run: its configuration (PUBLISH), and its state (RESTORE).
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/range_host.h"
#include "run/outcome.h"

namespace disttf::roles {

class RunStart {
 public:
  // `host` must outlive it.
  explicit RunStart(RangeHost& host) : host_(host) {}

  // `leave` drops the views at all ranges of this ps and returns true; or, if one of them is not
  // empty, changes nothing and returns false. Without it views are never dropped.
  void leave_views_with(std::function<bool()> leave) { leave_views_ = std::move(leave); }

  BodyPlan publish_header(PeerConnection& from);
  BodyPlan publish_came(PeerConnection& from);
  BodyPlan restore_header(PeerConnection& from);
  BodyPlan restore_came(PeerConnection& from);

  // Returns the run that the configuration from this connection would begin here, if it is complete
  // and there is no shard yet. The shell may then make the shard off the event loop
  // (RangeState::prepared()), since a large one takes seconds.
  struct Beginning {
    std::string json;
    RunConfig config;
  };
  [[nodiscard]] std::optional<Beginning> run_to_begin(const PeerConnection& from) const;

 private:
  BodyPlan refuse_chief(PeerConnection& from, ExitCode code, const std::string& why);
  // Returns whether this host has views, which bind it to a run with replicas; nullopt if they may
  // still be dropped, so either number of replicas is valid.
  [[nodiscard]] std::optional<bool> is_replicated() const;
  // Throws std::invalid_argument if the chief is to be refused; nothing has changed then.
  [[nodiscard]] RunConfig config_to_begin(const std::string& json);
  // Before a restore: closes connections whose last reply borrows memory that the restore
  // overwrites.
  void close_overtaken();

  RangeHost& host_;
  std::function<bool()> leave_views_;
};

}  // namespace disttf::roles
