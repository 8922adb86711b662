// Tracks which live processes have recorded an earlier state of a range. A primary that continues
// alone, all processes that it has answered since, and the chief that allowed it may die before the
// other host is notified. Then no process in memory can tell that the other host's copy is
// outdated. This class decides whether that happened.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "net/wire/frame.h"
#include "net/wire/replication.h"

namespace disttf::sim {

// A state of a range: the process in which it began, and its generation. (After all processes are
// lost, generations begin at 1 again.)
struct StateName {
  std::uint64_t lineage = 0;
  net::Generation generation = 0;
  friend auto operator<=>(const StateName&, const StateName&) = default;
};

class Witnesses {
 public:
  using Views = std::set<net::ViewNumber>;

  // A process has received that view, and with it all that the chief had recorded when it made the
  // view. `process` identifies the process.
  void hears(std::uint64_t process, std::size_t range, net::ViewNumber view);
  // A chief sends a process the view that it has made from what it had recorded then.
  void tells(std::uint64_t process, std::size_t range, net::ViewNumber view);
  // A process has held the state at that step, or was sent it.
  void has_seen(std::uint64_t process, std::size_t range, const StateName& state,
                std::uint64_t step);
  // The process is dead. (A frozen or unreachable process may still return and report the state.)
  void has_gone(std::uint64_t process);

  // Returns whether a live process has recorded one of these views, or has received a later step.
  [[nodiscard]] bool is_any_left(std::size_t range, const Views& views, const StateName& state,
                                 std::uint64_t step) const;

 private:
  struct Known {
    Views views;
    std::map<StateName, std::uint64_t> steps;  // the newest step
  };
  // By process and range.
  std::map<std::pair<std::uint64_t, std::size_t>, Known> known_;
  // By range and view: the views that its chief had recorded when it made it, including itself.
  std::map<std::pair<std::size_t, net::ViewNumber>, Views> made_of_;
};

}  // namespace disttf::sim
