// The state that the parts of a RunSession share.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "net/wire/backoff.h"
#include "roles/trainer/core/range_session.h"
#include "roles/trainer/core/trainer_outbox.h"
#include "run/outcome.h"
#include "run/task.h"
#include "run/training_state.h"

namespace disttf::roles {

struct RunContext {
  const Task& task;
  std::uint64_t incarnation;  // the task's, or one taken above that of another process
  net::Backoff backoff;       // between attempts to reach a ps
  std::vector<RangeSession> ranges = {};
  TrainerOutbox out = {};
  std::optional<Failure> failure = {};  // why this trainer ends
  // Of the run. It has --ps_replicas 2: as reported by the ps, until the configuration is known. A
  // ps that holds no state may have this from a chief that the others refuse.
  bool replicated = false;
  bool is_replication_known = false;  // from the configuration
  bool over = false;                  // a ps has reported this; it stays true
  bool fully_synchronous = true;      // every gradient counts
  bool elastic = false;
  // configuration_id() of what this trainer computes with; 0: not known yet.
  std::uint64_t configuration = 0;
  // A ps trains another configuration, and has sent it.
  bool is_other_configuration = false;
  // Chief, with --patience: the best evaluation that it or any ps has recorded. It is sent to all
  // ps before they receive a state, and before steps are made from one.
  std::optional<BestEvaluation> best = {};
  // has_connected: all ps have welcomed this process once. Until then welcomed_by holds the indices
  // of those that have. If a ps refuses it after that because of another process of this trainer,
  // that process is newer.
  bool has_connected = false;
  std::set<std::size_t> welcomed_by = {};

  // Sets each range to its own ps.
  void use_own_hosts() noexcept {
    for (RangeSession& range : ranges) {
      if (range.replica() != 0 && !range.is_open()) {
        range.try_other_host();
      }
    }
  }
  // Records whether this ps has reported the end of the run.
  void note_end(const RangeSession& range) noexcept {
    over = over || range.state() == net::ShardState::kFinished;
  }
  void close(std::size_t range) {
    ranges[range].close();
    out.add(CloseLink{range});
  }
  // Closes all links, as a reply may be on its way on any of them; each welcome reports the new
  // state.
  void close_all() {
    for (const RangeSession& range : ranges) {
      note_end(range);
      close(range.index());
    }
  }
  // "refused by ps 1 (10.0.0.7:2222): ..."
  [[nodiscard]] Failure failure_of(std::size_t range, const net::Refusal& refusal) const;
};

}  // namespace disttf::roles
