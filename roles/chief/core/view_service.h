// --ps_replicas 2: chooses the primary of a range from the reports of its two hosts.
//
// The rules, for one range:
//   - A view is (number, primary, paired). Only the chief makes views, each with the next number,
//     and hosts keep the newest one that they have received. A number begins with the incarnation
//     of the chief that made it. So two chiefs never make the same view, and those of a replaced
//     chief do not count. A chief that continues a view of its predecessor makes it its own: the
//     count stays, since nothing has been decided.
//   - In a paired view the primary acknowledges nothing that the backup does not have. So the
//     backup may be made the primary at any time. That happens when the primary is unreachable or
//     is a new process.
//   - In a view that is not paired only the primary has everything that was acknowledged, and it
//     is waited for.
//   - A primary that has lost its backup asks before it goes on alone. The answer is a view: from
//     then on the backup is never made the primary, whatever it holds.
//   - If a trainer is unreachable for the primary, and asks the backup of a paired view for the
//     range (a redirected client), it is cut off from the primary only: the backup is made the
//     primary. It is not reversed for the same reason, though: if each host is cut off from some
//     trainer, no view helps.
//   - A chief that has just started knows no view, and decides nothing before both hosts have
//     reported. Each decision that was ever acted upon is recorded at one of them, unless both
//     were lost, and then there is nothing left to lose. If a host is lost before the other one
//     has reported, its report still counts. A host that has received a view of a chief ignores
//     earlier chiefs, so its report stays true. Another chief may be the first to send a view to a
//     process that has just started; that view is overruled.
//
// Pure: no sockets, no clock. Not thread-safe.
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

  // The host has reported. REQUIRES: replica is 0 or 1.
  void record_report(std::uint8_t replica, const net::Report& report);
  // The host is unreachable, or its heartbeat timeout has expired.
  void lose(std::uint8_t replica);

  // Returns the view of the range as it should be now; nullopt: not known yet. A host that reports
  // an older view is to receive this one.
  [[nodiscard]] const std::optional<net::View>& view() const noexcept { return view_; }
  // Returns false if the host is a new process in place of the primary of a pair, and the backup,
  // which is to replace it, has not yet reported this view. REQUIRES: there is a view.
  [[nodiscard]] bool may_be_told(std::uint8_t replica) const;
  // Returns the incarnation of a newer chief that a host has recorded; nothing is decided any more.
  // 0: none.
  [[nodiscard]] std::uint64_t replaced_by() const noexcept { return replaced_by_; }
  // Returns the host that was the primary until it was replaced because a trainer could not reach
  // it.
  [[nodiscard]] std::optional<std::uint8_t> left() const noexcept { return left_; }

 private:
  using Host = std::optional<net::Report>;  // nullopt: unreachable

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
  // The newest view that a host has ever reported, and whether that host held the state then.
  net::View heard_;
  bool reported_holds_ = false;
  std::optional<net::View> view_;
  std::optional<std::uint8_t> left_;
  // By replica: it has reported the end of the run, and no process that replaced it has reported
  // otherwise. Nothing is decided then.
  std::array<bool, 2> finished_ = {};
  bool holds_ = false;  // the primary of view_ held a state when it became the primary
};

}  // namespace disttf::roles
