// Who is left that knows what a range's state once was. A primary that goes on alone, whoever it
// has answered since, and the chief that has let it, may be lost before the other host has heard of
// it: nothing that is in memory knows then that the copy there is an old one. This says whether it
// came to that.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "net/wire/generation.h"
#include "net/wire/replication.h"

namespace disttf::sim {

// Which state of a range: the process in which it began, and the generation. (Where everybody is
// lost generations begin anew.)
struct StateName {
  std::uint64_t lineage = 0;
  net::Generation generation = 0;
  friend auto operator<=>(const StateName&, const StateName&) = default;
};

class Witnesses {
 public:
  using Views = std::set<net::ViewNumber>;

  // `process`: tells processes apart. It has heard of that view, and so of all that the chief knew
  // that has made it.
  void hears(std::uint64_t process, std::size_t range, net::ViewNumber view);
  // A chief tells somebody of a view that it has made, of what it had heard when it first did.
  void tells(std::uint64_t process, std::size_t range, net::ViewNumber view);
  // It has held the state at that step, or was sent it.
  void has_seen(std::uint64_t process, std::size_t range, const StateName& state,
                std::uint64_t step);
  // It is dead. (One that is frozen, or that nobody reaches, may come back and say it.)
  void has_gone(std::uint64_t process);

  // Whether a process is left that knows one of these views, or has seen a later step.
  [[nodiscard]] bool is_any_left(std::size_t range, const Views& views, const StateName& state,
                                 std::uint64_t step) const;

 private:
  struct Known {
    Views views;
    std::map<StateName, std::uint64_t> steps;  // the newest
  };
  // By process and range.
  std::map<std::pair<std::uint64_t, std::size_t>, Known> known_;
  // By range and view: of its maker, then; itself among them.
  std::map<std::pair<std::size_t, net::ViewNumber>, Views> made_of_;
};

}  // namespace disttf::sim
