#include "roles/chief/core/view_service.h"

#include <algorithm>
#include <tuple>

namespace disttf::roles {
namespace {

using net::ReplicaRole;

std::uint8_t other_than(std::uint8_t replica) { return replica == 0 ? 1 : 0; }

// For a primary that has a backup: returns whether `other`, which holds a copy, is that backup. It
// may not have received the paired view yet, but it has the view before, in which its copy was
// completed. A copy of an older view may come from the process that was the primary then.
bool is_backup_of(const net::Report& primary, const net::Report& other) {
  // Unsigned, so that a newer view of the other host gives a large value.
  const std::uint32_t behind = primary.view.count - other.view.count;
  return other.replica_role == ReplicaRole::kBackup && behind <= 1;
}

}  // namespace

void ViewService::record_report(std::uint8_t replica, const net::Report& report) {
  if (report.view.chief > chief_) {
    replaced_by_ = std::max(replaced_by_, report.view.chief);
    view_.reset();
  }
  // A report also counts after a newer chief was seen: replaced_by() may still grow.
  hosts_.at(replica) = report;
  remember(replica, report);
  finished_.at(replica) = report.finished;
  decide();
}

void ViewService::remember(std::uint8_t replica, const net::Report& report) {
  if (report.view > heard_.number) {
    heard_ = {
        .number = report.view,
        .primary = report.replica_role == ReplicaRole::kPrimary ? replica : other_than(replica),
        .paired = report.paired};
    // No host has been seen to hold the state of the newer view yet.
    reported_holds_ = false;
  }
  reported_holds_ = reported_holds_ || (report.view == heard_.number && report.holds);
}

void ViewService::lose(std::uint8_t replica) {
  // heard_ stays: later decisions still depend on what this host has reported.
  hosts_.at(replica).reset();
  decide();
}

void ViewService::decide() {
  // Once a host has ended, its range needs no failover.
  if (finished_[0] || finished_[1] || replaced_by_ != 0) {
    return;
  }
  if (!view_) {
    // A new chief needs both reports: one host alone may hold an outdated copy.
    if (!hosts_[0] || !hosts_[1]) {
      return;
    }
    adopt();
  }
  follow();
  // Another chief may have made views that no host has reported; a host that receives one later
  // receives this chief's now.
  view_->number.chief = chief_;
}

void ViewService::follow() {
  const Host& primary = hosts_.at(view_->primary);
  const Host& other = hosts_.at(other_than(view_->primary));
  if (!primary) {
    // Only a backup that has reported this view: another one may turn out to be a new process.
    if (view_->paired && other && other->holds && other->view == view_->number) {
      make(other_than(view_->primary), /*paired=*/false);
    }
    return;
  }
  // Another chief may have made a process primary that has just started.
  const bool is_new = holds_ && !primary->holds && primary->view.chief != chief_;
  // The primary serves its range; only its own wishes, or trainers that miss it, change the view.
  if (primary->replica_role == ReplicaRole::kPrimary && !is_new) {
    holds_ = holds_ || primary->holds;
    // wants_alone and wants_pair count only for the current view: an older wish may have been
    // granted already.
    if (primary->view == view_->number && primary->wants_alone) {
      // A primary without its backup answers no trainer before it has this view.
      make(view_->primary, /*paired=*/false);
    } else if (primary->view == view_->number && primary->wants_pair && other && other->holds) {
      make(view_->primary, /*paired=*/true);
    } else if (is_out_of_reach(*primary, other)) {
      const std::uint8_t left = view_->primary;
      make(other_than(left), /*paired=*/false);
      // Recorded, so that this view is not reversed for the same reason.
      left_ = left;
    }
    return;
  }
  // It is about to receive the view; or it is a new process.
  if (holds_ && !primary->holds) {
    replace_primary(other);
  }
}

bool ViewService::may_be_told(std::uint8_t replica) const {
  const Host& host = hosts_.at(replica);
  const Host& other = hosts_.at(other_than(replica));
  // The state of the backup would be lost if an empty process became primary in its place.
  const bool is_new = replica == view_->primary && view_->paired && holds_ && host && !host->holds;
  return !is_new || !other || !other->holds || other->view == view_->number;
}

// Returns whether a trainer that the primary cannot reach reaches the backup. Trainers 64 ranks
// apart share a bit (net::in_set()). So in a run that large two other trainers may be taken for
// one; the backup of a paired view has everything, so that costs a change of the primary and loses
// nothing.
bool ViewService::is_out_of_reach(const net::Report& primary, const Host& other) const {
  // All reports must be of the current view: older ones may be of another pair.
  return view_->paired && primary.view == view_->number && other &&
         other->replica_role == ReplicaRole::kBackup && other->holds &&
         other->view == view_->number && (primary.trainers & other->trainers) != 0 &&
         left_ != other_than(view_->primary);
}

// The process that was the primary has gone, and its replacement holds nothing.
void ViewService::replace_primary(const Host& other) {
  const bool is_told = other && other->view == view_->number;
  // Neither process holds anything: no host is left that could have the state.
  const bool both_are_new = other && !is_told && !other->holds;
  // A backup that has received the view has everything that was acknowledged.
  if (view_->paired && is_told) {
    make(other_than(view_->primary), /*paired=*/false, other->holds);
  } else if (!view_->paired || both_are_new) {
    // The state is lost, so the chief restores the range.
    make(view_->primary, /*paired=*/false, /*holds=*/false);
  }
}

// Continues from what both hosts report: the newest view, with its chief's number; or a new one, if
// no host can go on in that.
void ViewService::adopt() {
  const net::ViewNumber newest = std::max(hosts_[0]->view, hosts_[1]->view);
  if (heard_.number > newest) {
    // The host that had this view was lost meanwhile. If it was a primary that had gone on alone,
    // the other host has an older copy, and must not take its place.
    view_ = heard_;
    holds_ = reported_holds_;
    return;
  }
  // The host that holds the state in the newest view; the primary if both do.
  const auto rank = [](const net::Report& report) {
    const bool is_primary = report.replica_role == ReplicaRole::kPrimary;
    // A held state counts first, then the newer view, then the role.
    return report.holds ? std::tuple(true, report.view, is_primary)
                        : std::tuple(false, net::ViewNumber{}, false);
  };
  // If the two are equal, replica 0 is chosen: it is the range's own ps.
  const std::uint8_t best = rank(*hosts_[1]) > rank(*hosts_[0]) ? 1 : 0;
  const net::Report& held = *hosts_.at(best);
  const net::Report& other = *hosts_.at(other_than(best));
  view_ = net::View{.number = newest, .primary = best};
  holds_ = held.holds;
  if (held.holds && held.replica_role == ReplicaRole::kPrimary && held.view == newest) {
    view_->paired = held.paired || (other.holds && other.view == held.view);
    // A copy of an older view may lack acknowledged updates, so this view has no backup.
    if (held.paired && other.holds && !is_backup_of(held, other)) {
      make(best, /*paired=*/false);
    }
  } else if (held.holds && held.replica_role == ReplicaRole::kBackup && other.holds &&
             other.replica_role == ReplicaRole::kPrimary) {
    // It had not received the paired view when the chief was lost.
    view_->primary = other_than(best);
    view_->paired = true;
  } else {
    make(held.holds ? best : 0, /*paired=*/false, held.holds);
  }
}

void ViewService::make(std::uint8_t primary, bool paired, bool holds) {
  // The rule against reversing applies until the primary changes for another reason.
  if (primary != view_->primary) {
    left_.reset();
  }
  // Each decision has a number of its own, so hosts never take an older one for it.
  view_ = net::View{.number = {.chief = chief_, .count = view_->number.count + 1},
                    .primary = primary,
                    .paired = paired};
  holds_ = holds;
}

}  // namespace disttf::roles
