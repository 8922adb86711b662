// The server pool of one run, led by its driver: when to dial a server, when to request its task
// again, whether all are connected, and whether all have finished. The restart policy decides what
// a task's end means.
//
// A state machine. The caller passes in events and the time, and carries out effects(), emptying
// them, after each call. It calls time() at deadline(). Servers are numbered by their position: the
// ps first, then the workers. Not thread-safe.
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
#include "net/wire/server_requests.h"
#include "roles/launch/core/restart_policy.h"
#include "run/effects.h"
#include "run/task.h"

namespace disttf::roles {

// --- effects

// Make one attempt to open a channel for requests; then call dialed().
struct DialServer {
  std::size_t server = 0;
};
// Send the server's request over the channel, and wait for task_ended(), refused() or closed().
struct RequestTask {
  std::size_t server = 0;
};
// Send a heartbeat over the open channel.
struct BeatServer {
  std::size_t server = 0;
};
// Close the channel if it is open. Its messages are ignored from now on.
struct LeaveServer {
  std::size_t server = 0;
};
// All servers are connected. Sent once.
struct PoolReady {};
// The tasks of all servers have ended. Sent once.
struct PoolDone {};
// The run has failed.
struct FailRun {
  int exit_code = 0;
  std::string sentence;
};

// The outcome of an attempt to reach a server.
struct ServerReached {};
struct ServerRefused {
  net::Refusal refusal;
};
struct ServerUnreachable {
  std::string why;
};
using DialOutcome = std::variant<ServerReached, ServerRefused, ServerUnreachable>;

class ServerPool {
 public:
  using TimePoint = RestartPolicy::TimePoint;
  using Effects = EffectQueue<DialServer, RequestTask, BeatServer, LeaveServer, Note, PoolReady,
                              PoolDone, FailRun>;

  // `listed`: the lists of the servers. `seed`, for pauses, differs in each process. Begins by
  // dialing all servers.
  ServerPool(const net::Cluster& listed, const Timeouts& timeouts, std::uint64_t seed,
             TimePoint now);

  void dialed(std::size_t server, const DialOutcome& outcome, TimePoint now);
  // Events of a requested task: its end, a refusal instead, or a closed channel.
  void task_ended(std::size_t server, const net::TaskEnd& end, TimePoint now);
  void refused(std::size_t server, const net::Refusal& refusal, const std::string& why,
               TimePoint now);
  void closed(std::size_t server, const std::string& why, TimePoint now);
  // The run failed in this process: nothing is restarted.
  void give_up(int exit_code) { policy_.stop(exit_code); }

  void time(TimePoint now);
  // Excludes the time in which this process was suspended from all timeouts.
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
    kReached,   // being dialed, until `until`
    kGathered,  // connected, or timed out; others are waited for
    kRequested,
    kPaused,  // before its task restarts
    kOver,    // its task has ended, or the run does not need it
  };
  struct Server {
    net::TaskId task;
    std::string name;
    net::Backoff backoff;
    Phase phase = Phase::kReached;
    bool connected = false;
    std::string why = {};                   // why the last attempt failed
    bool was_requested = false;             // by this driver, in this run
    bool is_told = false;                   // the log says that it is still busy
    bool is_done = false;                   // its task has ended
    TimePoint until{};                      // when the wait for it times out
    std::optional<TimePoint> next_at = {};  // of the next dial or request
  };

  void reach(std::size_t server, std::chrono::seconds limit, TimePoint now);
  void end_reach(std::size_t server, TimePoint now);
  void gather(TimePoint now);
  void request_task(std::size_t server, TimePoint now);
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
  bool is_gathered_ = false;  // the first wait for all servers is over
  TimePoint next_beat_;
  Effects effects_;
};

}  // namespace disttf::roles
