// How the chief brings a run to its end, whatever is lost on the way:
//
//   connect -> train -> await the others -> peek (if not every gradient counts) -> save (if there
//   is a --train_dir) -> conclude -> notify the ps -> end the views (replicas) -> end
//
// No task leaves before the result is durable: saved, if there is a --train_dir, and printed. Until
// the result is concluded it may be rolled back: if the ps are restored to an earlier state,
// training goes on. After that it is final.
//
// Its queries return the next action, and its calls report the outcome with the time. How an
// operation proceeds is up to RunSession and SnapshotCoordinator.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "run/effects.h"

namespace disttf::roles {

class RunLeader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Run {
    bool saves = false;                 // there is a --train_dir
    bool every_gradient_counts = true;  // else other trainers push after the chief's last reply
    bool replicated = false;            // the hosts of ranges receive views
  };
  explicit RunLeader(const Run& run) : run_(run) {}

  enum class Action : std::uint8_t {
    kConnect,      // to every ps; then connected()
    kTrain,        // join the run, and make its steps up to the last one; then trained()
    kAwaitOthers,  // send GOODBYE, wait until the others have the result; then others_done()
    kPeek,         // fetch the parameters that the ps hold now; then peeked()
    kSave,         // the state of all ps, in one attempt, until deadline(); then saved()
    kPause,        // until deadline(); then paused()
    kConclude,     // evaluate, and print the result; then concluded()
    kSaveAndFail,  // the state of the ps once they are at one step, until deadline(); then ended()
    kAnnounceEnd,  // notify every ps, until they release this trainer; then told()
    kEndViews,     // notify the hosts of every range, until deadline(); then ended()
    kEnd,
  };
  [[nodiscard]] Action next() const noexcept { return next_; }
  [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }

  // `is_over`: a ps has reported the end of the run.
  void connected(bool is_over) noexcept;
  void trained() noexcept;
  // `are_done` false: another chief has restored the ps to a state with steps still to be made.
  void others_done(bool are_done, TimePoint now);
  void peeked(bool are_done, TimePoint now);
  // `is_done` false: a ps was lost, or has another state. A disk error counts as done: it is not
  // tried again.
  void saved(bool is_done, TimePoint now);
  void paused() noexcept;
  void concluded() noexcept;
  void told(TimePoint now) noexcept;
  void ended() noexcept { next_ = Action::kEnd; }
  // Instead of an answer: a ps has reported the end of the run.
  void run_over() noexcept;
  // Instead of an answer: the task is to end with this code, without notifying the ps.
  void failed(int exit_code, TimePoint now) noexcept;

  // Returns whether the ps, if they do not hold one state, are restored to the current parameters,
  // which are the run's result; or else to the newest snapshot or checkpoint, or to the initial
  // parameters.
  [[nodiscard]] bool has_result() const noexcept { return has_result_; }
  // Returns whether the previous chief had already concluded the run.
  [[nodiscard]] bool was_late() const noexcept { return was_late_; }
  // kEnd: returns whether the task ends with the code of failed().
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

  [[nodiscard]] EffectQueue<Note>& notes() noexcept { return notes_; }

 private:
  [[nodiscard]] bool is_concluded() const noexcept;
  void settle(TimePoint now) noexcept;
  void roll_back();

  const Run run_;
  Action next_ = Action::kConnect;
  TimePoint deadline_{};
  std::optional<TimePoint> save_until_;  // for the current result
  bool has_result_ = false;
  bool was_late_ = false;
  bool has_failed_ = false;
  EffectQueue<Note> notes_;
};

}  // namespace disttf::roles
