// --ps_replicas 2: which host of a range is its primary, decided from what the two say.
//
// The rules, for one range:
//   - A view is (number, primary, paired). Only the chief makes one, with the next number, and
//     hosts keep the newest that they were told. A number begins with who has made it, so two
//     chiefs never make the same one, and one that has been replaced makes none that counts. A
//     chief that goes on with a view of the one before it makes it its own: the count stays, since
//     nothing has been decided.
//   - In a paired view the primary acknowledges nothing that the backup has not. So the backup may
//     be made the primary at any time; it is when the primary cannot be reached or is a new
//     process.
//   - In a view that is not paired the primary alone has what was acknowledged, and is waited for.
//   - A primary that has lost its backup asks before it goes on alone. The answer is a view: from
//     then on the backup is never made the primary, whatever it holds.
//   - A trainer that the primary lacks, and that asks the backup of a paired view for the range, is
//     cut off from the primary alone: the backup is made the primary. Not back again for the same
//     reason, though: where each host is out of some trainer's reach, no view helps.
//   - A chief that has just started knows no view, and decides nothing before both hosts have
//     said what they know: each decision that was ever acted upon is known to one of them, unless
//     both were lost, and then there is nothing left to lose. One that was known to a host which
//     is lost before the other one has spoken counts as if that host were there still. A host that
//     has heard a chief hears none before it, so that what it has said stays true; another chief
//     may be the first to tell a process that has just begun, and is overruled.
//
// Pure: no socket, no clock. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "net/wire/replication.h"

namespace disttf::roles {

class ViewService {
 public:
  // `chief`: its incarnation.
  explicit ViewService(std::uint64_t chief) : chief_(chief) {}

  // The host has said what it is. REQUIRES: replica is 0 or 1.
  void hear(std::uint8_t replica, const net::Report& report);
  // It cannot be reached, or was silent for too long.
  void lose(std::uint8_t replica);

  // The view of the range as it should be now; nullopt: not known yet. Whoever reports an older one
  // is to be told.
  [[nodiscard]] const std::optional<net::View>& view() const noexcept { return view_; }
  // REQUIRES: there is a view. Not yet: it is a new process in the place of the primary of a pair,
  // and the backup, which is to replace it, has yet to say that it has heard of the view.
  [[nodiscard]] bool may_be_told(std::uint8_t replica) const;
  // A host has heard from a newer chief; nothing is decided any more. 0: none has.
  [[nodiscard]] std::uint64_t replaced_by() const noexcept { return replaced_by_; }
  // The host that was the primary until a trainer that could not reach it made it another one.
  [[nodiscard]] std::optional<std::uint8_t> left() const noexcept { return left_; }

 private:
  using Host = std::optional<net::Report>;  // nullopt: cannot be reached

  void decide();
  // REQUIRES: both hosts have reported.
  void adopt();
  // REQUIRES: there is a view.
  void follow();
  void remember(std::uint8_t replica, const net::Report& report);
  void replace_primary(const Host& other);
  [[nodiscard]] bool is_out_of_reach(const net::Report& primary, const Host& other) const;
  void make(std::uint8_t primary, bool paired, bool holds = true);

  std::uint64_t chief_;
  std::uint64_t replaced_by_ = 0;
  std::array<Host, 2> hosts_;
  // The newest that a host has ever reported, and whether the host held the state then.
  net::View heard_;
  bool heard_holds_ = false;
  std::optional<net::View> view_;
  std::optional<std::uint8_t> left_;
  // By replica: it has said that the run is over, and no process in its place has said otherwise.
  // Nothing is decided then.
  std::array<bool, 2> finished_ = {};
  bool holds_ = false;  // the primary of view_ held a state when it was made that
};

}  // namespace disttf::roles
