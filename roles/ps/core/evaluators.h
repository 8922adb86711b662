// Evaluators of a range, and services that follow the run: they request the configuration and the
// parameters of a later step. They are not trainers: their presence is not tracked, and no step and
// no end waits for them.
//
// They receive a copy, made once for all that the same step answers. Of each process at most one
// request is outstanding, and the next one follows the answer. An evaluator that is suspended or
// does not read thus costs the memory of one copy, and there are at most kMostEvaluators.
//
// Not thread-safe: the ps's only thread owns it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/wire/frame.h"
#include "net/wire/snapshot_messages.h"
#include "roles/ps/core/outbox.h"
#include "roles/ps/core/peer_connection.h"
#include "roles/ps/core/shard.h"

namespace disttf::roles {

class Evaluators {
 public:
  // For one range. A further evaluator replaces the oldest one.
  static constexpr std::size_t kMost = 8;
  // What they can be answered with.
  struct Offer {
    Shard* shard = nullptr;
    net::Generation generation = 0;
    bool has_steps = false;   // steps are made from the shard's state
    bool has_result = false;  // the shard's state is the run's result
    bool is_over = false;     // the run is over, whether or not this host holds its result
  };

  explicit Evaluators(Outbox& out) : out_(out) {}

  // An evaluator has connected: closes the older connections of its process.
  void connected(ConnectionId id, std::uint64_t incarnation);
  void closed(ConnectionId id);
  // Handles a frame. `config`: the run's configuration, or nullptr while it is not known to be the
  // run's. `is_backup`: this host no longer serves the range. serve() is to follow.
  BodyPlan header(PeerConnection& from, std::shared_ptr<const std::string> config, bool is_backup);
  // Answers those whose step has been reached.
  void serve(const Offer& offer);
  void send_heartbeats();
  void close();
  void refuse(const net::Refusal& verdict);
  [[nodiscard]] std::vector<ConnectionId> ids() const;

 private:
  struct Evaluator {
    ConnectionId id = 0;
    std::uint64_t incarnation = 0;    // of the process
    std::optional<net::Watch> watch;  // the outstanding request
  };

  Outbox& out_;
  std::vector<Evaluator> evaluators_;  // oldest first
};

}  // namespace disttf::roles
