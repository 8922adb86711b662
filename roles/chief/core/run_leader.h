// How the chief brings a run to its end, whatever is lost on the way:
//
//   connect -> train -> await the others -> peek (where not every gradient counts) -> save (where
//   there is a --train_dir) -> conclude -> tell the end -> end the views (replicas) -> end
//
// Nobody leaves before the result is durable: saved, where there is a place for it, and printed.
// Before it is concluded it may be taken back: where the ps were set to an earlier state the run is
// trained again. From then on nothing is.
//
// Says what is to be done next, and is told what has come of it, and when. How an operation goes on
// meanwhile is RunSession's and SnapshotCoordinator's matter.
//
// Not thread-safe: the computing thread owns it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "roles/run/effect_queue.h"
#include "roles/run/note.h"

namespace disttf::roles {

class RunLeader {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Run {
    bool saves = false;                 // there is a --train_dir
    bool every_gradient_counts = true;  // else others push on after the chief has its last reply
    bool replicated = false;            // hosts of ranges are told views
  };
  explicit RunLeader(const Run& run) : run_(run) {}

  enum class Action : std::uint8_t {
    kConnect,      // to every ps; then connected()
    kTrain,        // join the run, and make its steps up to the last one; then trained()
    kAwaitOthers,  // say goodbye, and wait until the others have the result; then others_done()
    kPeek,         // at the parameters that the ps hold now; then peeked()
    kSave,         // what all ps hold, tried once, until deadline(); then saved()
    kPause,        // until deadline(); then paused()
    kConclude,     // evaluate, and print the result; then concluded()
    kSaveAndFail,  // what the ps hold once they are at one step, until deadline(); then ended()
    kTellTheEnd,   // to every ps, until they let this trainer go; then told()
    kEndViews,     // tell the hosts of every range, until deadline(); then ended()
    kEnd,
  };
  [[nodiscard]] Action next() const noexcept { return next_; }
  [[nodiscard]] TimePoint deadline() const noexcept { return deadline_; }

  // `is_over`: a ps says that the run is.
  void connected(bool is_over) noexcept;
  void trained() noexcept;
  // False: another chief has set the ps to a state from which there are steps to be made still.
  void others_done(bool are_done, TimePoint now);
  void peeked(bool are_done, TimePoint now);
  // False: a ps was lost, or has another state; a disk that refuses is not tried again.
  void saved(bool is_done, TimePoint now);
  void paused() noexcept;
  void concluded() noexcept;
  void told(TimePoint now) noexcept;
  void ended() noexcept { next_ = Action::kEnd; }
  // Instead of an answer: a ps says that the run is over.
  void run_over() noexcept;
  // Instead of an answer: the task is to end with this code, and nobody is told.
  void failed(int exit_code, TimePoint now) noexcept;

  // What the ps are set to where they do not hold one state: the parameters in hand, which are the
  // run's result; or else the newest snapshot, or checkpoint, or what a run begins with.
  [[nodiscard]] bool has_result() const noexcept { return has_result_; }
  // Not all of it has been this process's: the chief before it had concluded the run.
  [[nodiscard]] bool was_late() const noexcept { return was_late_; }
  // kEnd: the task ends with what it was told of by failed().
  [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }

  [[nodiscard]] EffectQueue<Note>& notes() noexcept { return notes_; }

 private:
  [[nodiscard]] bool is_concluded() const noexcept;
  void settle(TimePoint now) noexcept;
  void set_back();

  const Run run_;
  Action next_ = Action::kConnect;
  TimePoint deadline_{};
  std::optional<TimePoint> save_until_;  // of this result
  bool has_result_ = false;
  bool was_late_ = false;
  bool has_failed_ = false;
  EffectQueue<Note> notes_;
};

}  // namespace disttf::roles
