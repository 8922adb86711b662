#include "roles/chief/core/run_leader.h"

#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {
namespace {

// The time for copying and writing the ps's state: at the end of a run; and before this task leaves
// it because of a signal (orchestrators grant 10 s or more) or a lost ps.
constexpr std::chrono::seconds kLastSave{60};
constexpr std::chrono::seconds kSaveAndFail{4};
// The pause before a last save that failed because of a lost ps is tried again.
constexpr std::chrono::milliseconds kSaveAgain{20};
// The time to notify ps that were restarted just then.
constexpr std::chrono::seconds kTrainersShutdownTime{3};

}  // namespace

void RunLeader::connected(bool is_over) noexcept {
  if (is_over) {
    run_over();
  } else {
    next_ = Action::kTrain;
  }
}

void RunLeader::trained() noexcept {
  has_result_ = true;
  save_until_.reset();
  next_ = Action::kAwaitOthers;
}

void RunLeader::others_done(bool are_done, TimePoint now) {
  if (!are_done) {
    roll_back();
    // The result contains every gradient already, so the ps need not be asked again.
  } else if (run_.every_gradient_counts) {
    settle(now);
  } else {
    next_ = Action::kPeek;  // the other trainers' last pushes count, too
  }
}

void RunLeader::peeked(bool are_done, TimePoint now) {
  if (are_done) {
    settle(now);
  } else {
    roll_back();
  }
}

// The other trainers are done, and the current parameters are the result.
void RunLeader::settle(TimePoint now) noexcept {
  if (!run_.saves) {
    next_ = Action::kConclude;
    return;
  }
  // A result that is trained again gets its full time for saving; a save that is tried again does
  // not.
  if (!save_until_) {
    save_until_ = now + kLastSave;
  }
  deadline_ = *save_until_;
  next_ = Action::kSave;
}

void RunLeader::roll_back() {
  notes_.add(
      Note{.level = Note::Level::kWarning,
           .text = "another chief has rolled the ps back to an earlier state; training goes on"});
  // The result belongs to a state that the ps no longer hold.
  has_result_ = false;
  next_ = Action::kTrain;
}

void RunLeader::saved(bool is_done, TimePoint now) {
  if (is_done) {
    next_ = Action::kConclude;
    // The pause has to end within the limit.
  } else if (now + kSaveAgain < *save_until_) {
    deadline_ = now + kSaveAgain;
    next_ = Action::kPause;
  } else {
    notes_.add(Note{.level = Note::Level::kWarning,
                    .text = "no checkpoint of the last step was saved: for " +
                            seconds_text(kLastSave) + " not all ps had a snapshot of it"});
    next_ = Action::kConclude;
  }
}

// Awaiting the others restores a lost ps to the result.
void RunLeader::paused() noexcept { next_ = Action::kAwaitOthers; }

void RunLeader::concluded() noexcept { next_ = Action::kAnnounceEnd; }

void RunLeader::told(TimePoint now) noexcept {
  deadline_ = now + kTrainersShutdownTime;
  next_ = run_.replicated ? Action::kEndViews : Action::kEnd;
}

// The previous chief may have died before it had notified all ps.
void RunLeader::run_over() noexcept {
  was_late_ = true;
  next_ = Action::kAnnounceEnd;
}

bool RunLeader::is_concluded() const noexcept {
  switch (next_) {
    case Action::kConclude:
    case Action::kAnnounceEnd:
    case Action::kEndViews:
    case Action::kEnd:
      return true;
    default:
      return false;
  }
}

void RunLeader::failed(int exit_code, TimePoint now) noexcept {
  // Before a state has been joined, or once the result is durable, there is nothing to save.
  const bool is_worth_saving = next_ != Action::kConnect && next_ != Action::kSaveAndFail &&
                               !is_concluded() && run_.saves &&
                               (exit_code == kHungUp || exit_code == kInterrupted ||
                                exit_code == kTerminated || exit_code == kLostPeers);
  has_failed_ = true;
  deadline_ = now + kSaveAndFail;
  next_ = is_worth_saving ? Action::kSaveAndFail : Action::kEnd;
}

}  // namespace disttf::roles
