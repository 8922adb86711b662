// What the parts of a RunSession have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "net/wire/backoff.h"
#include "roles/run/early_end.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"
#include "roles/trainer/core/range_session.h"
#include "roles/trainer/core/trainer_outbox.h"

namespace disttf::roles {

struct RunContext {
  const Task& task;
  std::uint64_t incarnation;  // the task's, or one that it has taken above another process's
  net::Backoff backoff;       // between attempts to reach a ps
  std::vector<RangeSession> ranges = {};
  TrainerOutbox out = {};
  std::optional<Failure> failure = {};  // what ends this trainer
  // Of the run.
  // Has --ps_replicas 2: as far as is known from the ps, until the configuration says it. A ps that
  // holds no state may have been told so by a chief that the others refuse.
  bool replicated = false;
  bool is_replication_known = false;  // from the configuration
  bool over = false;                  // a ps has said so; from then on it is
  bool strict = true;                 // every gradient counts
  bool elastic = false;
  // configuration_id() of what this trainer computes with; 0: not known yet.
  std::uint64_t configuration = 0;
  // A ps trains another one, and has sent it.
  bool is_other_configuration = false;
  // Chief, with --patience: the newest that it, or any ps, knows of. It is told to all ps before
  // they are set to a state, and before steps are made of one.
  std::optional<BestEvaluation> best = {};
  // All ps have welcomed this process, once; and before that, these have, by index. One that
  // refuses it after that, since another process is this trainer, has heard of one that came later.
  bool has_connected = false;
  std::set<std::size_t> welcomed_by = {};

  // Each range is its own ps's.
  void use_own_hosts() noexcept {
    for (RangeSession& range : ranges) {
      if (range.replica() != 0 && !range.is_open()) {
        range.try_other_host();
      }
    }
  }
  // A ps says whether the run is over.
  void note_end(const RangeSession& range) noexcept {
    over = over || range.state() == net::ShardState::kFinished;
  }
  void close(std::size_t range) {
    ranges[range].close();
    out.add(CloseLink{range});
  }
  // A reply may be on its way over any of them, and each welcome tells the news.
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
