// What the primary of a range has told its backup, and what the backup has of it: log shipping with
// acknowledgements; of entries that the backup takes from memory also when the primary is gone that
// memory is the acknowledgement. Entries are counted from 1: the whole state is one (FILL), each
// update after it is one, and so are the word that the backup has everything (COMPLETE) and the one
// that the run ends here (CONCLUDE).
//
// Once the backup may be made the primary nothing is answered that it has not: needs_acks().
// Before, while it is being filled, answers only wait for a backlog that is too long.
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

  // This host becomes the primary. `paired`: the other one may still be chosen in its place, so
  // that the chief is to be asked first before anything is answered.
  void begin(bool paired) noexcept {
    *this = {};
    needs_acks_ = paired;
  }
  // The chief may choose the other host, whatever another chief has said.
  void pair() noexcept { needs_acks_ = true; }
  // The chief will not choose the other host any more, or has chosen it: nothing is waited for.
  void go_alone() noexcept { needs_acks_ = false; }

  // The other host is there, and has nothing. Returns the entry that is the state.
  Index begin_fill() noexcept {
    has_backup_ = true;
    is_complete_ = false;
    acked_ = head_;
    complete_entry_ = kNone;
    fill_entry_ = ++head_;
    return fill_entry_;
  }
  // An update is made, or none is any more, whether or not anybody is to be told. Returns its
  // entry.
  Index append() noexcept { return ++head_; }

  enum class Progress : std::uint8_t {
    kNone,
    kFilled,    // it has the state: complete() follows
    kComplete,  // it has everything, and knows it
  };
  // The backup has this entry, and all before it. REQUIRES: entry <= head().
  Progress acknowledged(Index entry) noexcept {
    acked_ = std::max(acked_, entry);
    if (entry == complete_entry_) {
      is_complete_ = true;
      return Progress::kComplete;
    }
    return entry == fill_entry_ ? Progress::kFilled : Progress::kNone;
  }
  // The backup will have this entry, and has or will have all before it, whatever becomes of this
  // host: it is as good as acknowledged. REQUIRES: the state has been acknowledged.
  void given(Index entry) noexcept { acked_ = std::max(acked_, entry); }
  // The backup is about to be told that it has everything. From here on it may be made the primary,
  // so nothing counts that it has not. Returns the entry that says so.
  Index complete() noexcept {
    needs_acks_ = true;
    complete_entry_ = ++head_;
    return complete_entry_;
  }
  void lose_backup() noexcept {
    has_backup_ = false;
    is_complete_ = false;
  }

  // The newest entry.
  [[nodiscard]] Index head() const noexcept { return head_; }
  // Entries that the backup neither has nor has been given, where there is one.
  [[nodiscard]] Index lag() const noexcept { return has_backup_ ? head_ - acked_ : 0; }
  [[nodiscard]] bool needs_acks() const noexcept { return needs_acks_; }
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  // Whether the backup has what an answer tells: `head`, the newest entry when it was asked for.
  // `tells_all`: it tells of every update, also of those that others have made since.
  [[nodiscard]] bool is_safe(Index head, bool tells_all) const noexcept {
    if (!needs_acks_) {
      return !has_backup_ || head_ - acked_ <= kMaxBacklog;
    }
    return tells_all ? acked_ == head_ : acked_ >= head;
  }

 private:
  static constexpr Index kNone = std::numeric_limits<Index>::max();
  // Entries that may be on their way to a host that is still being filled, the state itself among
  // them: no trainer is answered while there are more. So beside the state at most two updates, in
  // async mode two and one of each trainer, wait in memory for a host that is slow to take them,
  // and training goes on as fast as it takes them. (Those that were given lie in memory of their
  // own.)
  static constexpr Index kMaxBacklog = 2;

  bool has_backup_ = false;
  bool needs_acks_ = false;
  bool is_complete_ = false;
  Index head_ = 0;
  Index acked_ = 0;  // the newest that the backup has, or has been given
  Index fill_entry_ = kNone;
  Index complete_entry_ = kNone;  // once COMPLETE was sent
};

}  // namespace disttf::roles
