// The servers of one run, as its driver leads them: who is dialed when, which task is ordered and
// ordered again, when all are there, and when all are done. What a task's end means, the restart
// policy decides.
//
// A state machine: it is told what has happened, and at what time; what it wants done it puts into
// effects(), which whoever calls it empties after each call. It wants to be called with time() at
// deadline(). Servers have the numbers of their places: the ps first, then the workers. Not
// thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "net/wire/backoff.h"
#include "net/wire/cluster.h"
#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/run_order.h"
#include "roles/launch/core/restart_policy.h"
#include "roles/run/effect_queue.h"
#include "roles/run/note.h"
#include "roles/run/task.h"

namespace disttf::roles {

// --- effects

// One attempt to open a channel for orders; then dialed().
struct DialServer {
  std::size_t server = 0;
};
// Send its order over the channel, and listen until task_ended(), refused() or closed().
struct OrderTask {
  std::size_t server = 0;
};
// Over the channel, which is open.
struct BeatServer {
  std::size_t server = 0;
};
// Close the channel, if it is open still. Nothing is heard of it any more.
struct LeaveServer {
  std::size_t server = 0;
};
// All servers are there: once.
struct FleetReady {};
// The tasks of all servers are over: once.
struct FleetDone {};
// The run has failed.
struct FailRun {
  int exit_code = 0;
  std::string sentence;
};

// What came of an attempt to reach a server.
struct ServerReached {};
struct ServerRefused {
  net::Refusal refusal;
};
struct ServerUnreachable {
  std::string why;
};
using DialOutcome = std::variant<ServerReached, ServerRefused, ServerUnreachable>;

class ServerFleet {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects = EffectQueue<DialServer, OrderTask, BeatServer, LeaveServer, Note, FleetReady,
                              FleetDone, FailRun>;

  // `listed`: the lists as the servers know them. `seed` of pauses: another one in each process.
  // Begins by dialing all.
  ServerFleet(const net::Cluster& listed, const Timeouts& timeouts, std::uint64_t seed,
              TimePoint now);

  void dialed(std::size_t server, const DialOutcome& outcome, TimePoint now);
  // An ordered task: its end, a refusal in its place, or the channel is no more.
  void task_ended(std::size_t server, const net::TaskEnd& end, TimePoint now);
  void refused(std::size_t server, const net::Refusal& refusal, const std::string& why,
               TimePoint now);
  void closed(std::size_t server, const std::string& why, TimePoint now);
  // Nothing can go on: something failed here.
  void give_up(int exit_code) { policy_.stop(exit_code); }

  void time(TimePoint now);
  // Of the time until now, what this process did not see: nobody is missed for it.
  void forgive(TimePoint::duration missed);
  [[nodiscard]] TimePoint deadline() const;

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] const net::TaskId& task_of(std::size_t server) const {
    return servers_.at(server).task;
  }
  // "ps 0 (10.0.0.7:2222)"
  [[nodiscard]] const std::string& name_of(std::size_t server) const {
    return servers_.at(server).name;
  }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  enum class Phase : std::uint8_t {
    kReached,   // by dialing, until `until`
    kGathered,  // it is there, or was not in time; others are waited for
    kOrdered,
    kPaused,  // its task is to be started again
    kOver,    // its task is, or the run is for it
  };
  struct Server {
    net::TaskId task;
    std::string name;
    net::Backoff backoff;
    Phase phase = Phase::kReached;
    bool connected = false;
    std::string why = {};                   // the last attempt failed
    bool was_ordered = false;               // by this driver, in this run
    bool is_told = false;                   // that it is still at work
    bool is_done = false;                   // its task is over
    TimePoint until{};                      // when it is given up
    std::optional<TimePoint> next_at = {};  // to dial, or to order again
  };

  void reach(std::size_t server, std::chrono::seconds limit, TimePoint now);
  void end_reach(std::size_t server, TimePoint now);
  void gather(TimePoint now);
  void order(std::size_t server, TimePoint now);
  void take_end(std::size_t server, const Ending& ending, const std::string& last_line,
                TimePoint now);
  void done(std::size_t server);
  void fail(int exit_code, const std::string& sentence);
  void say(Note::Level level, const std::string& text) {
    effects_.add(Note{.level = level, .text = text});
  }

  const Timeouts timeouts_;
  std::vector<Server> servers_;  // in the policy's order
  RestartPolicy policy_;
  bool is_gathered_ = false;  // the first time: all are there, or were waited for
  TimePoint next_beat_;
  Effects effects_;
};

}  // namespace disttf::roles
