// The replication log of a range's primary: which entries it has sent to its backup, and which the
// backup has. It is log shipping with acknowledgements. For an entry handed off through memory that
// outlives the primary, that memory is the acknowledgement. Entries are counted from 1. The whole
// state (FILL) is one entry, and so are each update after it, the message that the backup is
// complete (COMPLETE) and the message that the run ends here (CONCLUDE).
//
// Once the backup may be made the primary, an answer may depend only on what the backup has:
// needs_acks(). Before, while the backup is being filled, answers wait only if the backlog is too
// long.
//
// A value. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace disttf::roles {

class ReplicationLog {
 public:
  using Index = std::uint64_t;

  // This host becomes the primary. `paired`: the other host may still be chosen in its place, so
  // the chief must permit it to go on before it answers anything.
  void begin(bool paired) noexcept {
    *this = {};
    needs_acks_ = paired;
  }
  // The chief may choose the other host, whatever an earlier chief has decided.
  void pair() noexcept { needs_acks_ = true; }
  // The chief will not choose the other host any more, or has chosen it: no acknowledgement is
  // required.
  void go_alone() noexcept { needs_acks_ = false; }

  // The other host has connected and holds nothing. Returns the entry of the state.
  Index begin_fill() noexcept {
    has_backup_ = true;
    is_complete_ = false;
    acked_ = head_;
    complete_entry_ = kNone;
    fill_entry_ = ++head_;
    return fill_entry_;
  }
  // Counts an update, or the end of updates, whether or not there is a backup. Returns its entry.
  Index append() noexcept { return ++head_; }

  enum class Progress : std::uint8_t {
    kNone,
    kFilled,    // it has the state; complete() is to follow
    kComplete,  // it has everything, and has acknowledged COMPLETE
  };
  // The backup has acknowledged this entry, and so all before it. REQUIRES: entry <= head().
  Progress acknowledged(Index entry) noexcept {
    acked_ = std::max(acked_, entry);
    if (entry == complete_entry_) {
      is_complete_ = true;
      return Progress::kComplete;
    }
    return entry == fill_entry_ ? Progress::kFilled : Progress::kNone;
  }
  // The entry was handed off: the backup has it, and all before it, whatever becomes of this host.
  // It counts as acknowledged. REQUIRES: the state has been acknowledged.
  void handed_off(Index entry) noexcept { acked_ = std::max(acked_, entry); }
  // COMPLETE is about to be sent. From here on the backup may be made the primary, so no answer may
  // depend on what it does not have. Returns the entry of COMPLETE.
  Index complete() noexcept {
    needs_acks_ = true;
    complete_entry_ = ++head_;
    return complete_entry_;
  }
  void lose_backup() noexcept {
    has_backup_ = false;
    is_complete_ = false;
  }

  // Returns the newest entry.
  [[nodiscard]] Index head() const noexcept { return head_; }
  // Returns the number of entries that the backup neither has nor was handed; 0 without a backup.
  [[nodiscard]] Index lag() const noexcept { return has_backup_ ? head_ - acked_ : 0; }
  [[nodiscard]] bool needs_acks() const noexcept { return needs_acks_; }
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  // Returns whether the backup has what an answer reveals. `head`: the newest entry when the answer
  // was requested. `tells_all`: the answer reveals all updates, including those made since.
  [[nodiscard]] bool is_safe(Index head, bool tells_all) const noexcept {
    if (!needs_acks_) {
      return !has_backup_ || head_ - acked_ <= kMaxBacklog;
    }
    return tells_all ? acked_ == head_ : acked_ >= head;
  }

 private:
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  // The number of entries, the state among them, that may be outstanding at a host that is still
  // being filled. While there are more, no trainer is answered. So beside the state at most two
  // updates (in async mode two and one of each trainer) wait in memory for a slow host, and
  // training proceeds as fast as that host reads. (Updates that were handed off lie in memory of
  // their own.)
  static constexpr Index kMaxBacklog = 2;

  bool has_backup_ = false;
  bool needs_acks_ = false;
  bool is_complete_ = false;
  Index head_ = 0;
  Index acked_ = 0;  // the newest that the backup has or was handed
  Index fill_entry_ = kNone;
  Index complete_entry_ = kNone;  // once COMPLETE was sent
};

}  // namespace disttf::roles
