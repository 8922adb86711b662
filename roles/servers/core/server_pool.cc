#include "roles/servers/core/server_pool.h"

#include <algorithm>
#include <random>
#include <utility>

#include "run/outcome.h"

namespace disttf::roles {
namespace {

// Trainers wait for a server that restarts, so it is redialed soon.
constexpr std::chrono::milliseconds kLongestServerPause{250};

}  // namespace

ServerPool::ServerPool(const net::Cluster& listed, const Timeouts& timeouts, std::uint64_t seed,
                       TimePoint now)
    : timeouts_(timeouts), policy_({}, {}, std::mt19937_64(seed)), next_beat_(now) {
  // Each server has its own back-off seed, so that the redials do not all happen together.
  std::mt19937_64 seeds(seed + 1);
  for (const net::Job job : {net::Job::kPs, net::Job::kWorker}) {
    for (std::size_t index = 0; index < listed.tasks_of(job).size(); ++index) {
      const net::TaskId task{.job = job, .index = index};
      servers_.push_back({.task = task,
                          .name = describe(listed, task),
                          .backoff = net::Backoff(std::mt19937_64(seeds()))});
      policy_.add(job == net::Job::kPs ? RestartPolicy::Part::kPs : RestartPolicy::Part::kWorker);
    }
  }
  for (std::size_t server = 0; server < servers_.size(); ++server) {
    reach(server, timeouts_.start, now);
  }
}

void ServerPool::reach(std::size_t number, std::chrono::seconds limit, TimePoint now) {
  Server& server = servers_[number];
  server.phase = Phase::kReached;
  server.until = now + limit;
  server.is_told = false;
  server.backoff.reset();
  effects_.add(DialServer{number});
}

void ServerPool::dialed(std::size_t number, const DialOutcome& outcome, TimePoint now) {
  Server& server = servers_[number];
  server.connected = std::holds_alternative<ServerReached>(outcome);
  server.why.clear();
  if (const auto* const unreachable = std::get_if<ServerUnreachable>(&outcome)) {
    server.why = unreachable->why;
  } else if (const auto* const refused = std::get_if<ServerRefused>(&outcome)) {
    const net::Refusal& refusal = refused->refusal;
    server.why = "its reply: " + refusal.sentence;
    // The server may be busy with this driver's own earlier request: it was frozen, and stops that
    // task when it sees that the channel is closed. If the task is another driver's, it stays busy,
    // and the wait for the server times out.
    const bool is_own_task = server.was_requested && refusal.exit_code == kLostPeers;
    if (!is_own_task) {
      fail(refusal.exit_code, server.name + " replied: " + refusal.sentence);
    } else if (!std::exchange(server.is_told, true)) {
      say(Note::Level::kInfo,
          server.name + " is still busy with this driver's last request; retrying");
    }
  }
  const auto next = now + std::min(server.backoff.next(), kLongestServerPause);
  // A pause beyond the limit would only delay the error.
  if (server.connected || next >= server.until) {
    end_reach(number, now);
  } else {
    server.next_at = next;
  }
}

void ServerPool::end_reach(std::size_t number, TimePoint now) {
  Server& server = servers_[number];
  // Before the first requests a missing server is reported together with all others.
  if (!is_gathered_) {
    server.phase = Phase::kGathered;
    gather(now);
  } else if (server.connected) {
    request_task(number, now);
  } else {
    server.phase = Phase::kOver;
    fail(kLostPeers,
         server.name + " has been gone for " + seconds_text(timeouts_.peer) + ": " + server.why);
  }
}

void ServerPool::gather(TimePoint now) {
  std::string missing;
  for (const Server& server : servers_) {
    // Not yet decided; the last server to be decided completes the loop.
    if (server.phase != Phase::kGathered) {
      return;
    }
    if (!server.connected) {
      missing += (missing.empty() ? "" : "; ") + server.name + ": " + server.why;
    }
  }
  is_gathered_ = true;
  // Nothing starts unless every server is there.
  if (!missing.empty()) {
    for (Server& server : servers_) {
      server.phase = Phase::kOver;
    }
    fail(kLostPeers, "not connected after " + seconds_text(timeouts_.start) + ": " + missing);
    return;
  }
  effects_.add(PoolReady{});
  for (std::size_t number = 0; number < servers_.size(); ++number) {
    request_task(number, now);
  }
}

void ServerPool::request_task(std::size_t number, TimePoint now) {
  servers_[number].phase = Phase::kRequested;
  servers_[number].was_requested = true;
  policy_.started(number, now);
  effects_.add(RequestTask{number});
}

void ServerPool::task_ended(std::size_t number, const net::TaskEnd& end, TimePoint now) {
  take_end(number, {.exit_code = end.exit_code, .signal = end.signal}, end.last_line, now);
}

void ServerPool::refused(std::size_t number, const net::Refusal& refusal, const std::string& why,
                         TimePoint now) {
  fail(refusal.exit_code, servers_[number].name + " replied: " + refusal.sentence);
  closed(number, why, now);
}

void ServerPool::closed(std::size_t number, const std::string& why, TimePoint now) {
  servers_[number].connected = false;
  servers_[number].why = why;
  // Before the end is evaluated: a restart must dial a new connection.
  effects_.add(LeaveServer{number});
  take_end(number, {.lost = true}, why, now);
}

void ServerPool::take_end(std::size_t number, const Ending& ending, const std::string& last_line,
                          TimePoint now) {
  Server& server = servers_[number];
  const RestartPolicy::Decision decision = policy_.ended(number, ending, now);
  const std::string sentence =
      server.name + " " + decision.sentence + (last_line.empty() ? "" : ": " + last_line);
  switch (decision.action) {
    // A task that ends well ends the wait for its server.
    case RestartPolicy::Action::kLeave:
      if (!decision.sentence.empty()) {
        say(Note::Level::kWarning, sentence);
      }
      done(number);
      break;
    case RestartPolicy::Action::kStop:
      server.phase = Phase::kOver;
      fail(*policy_.exit_code(), sentence);
      break;
    case RestartPolicy::Action::kRestart:
      say(Note::Level::kWarning, sentence);
      server.phase = Phase::kPaused;
      server.next_at = now + decision.delay;
      break;
  }
}

// The server's task is over; it waits for requests again.
void ServerPool::done(std::size_t number) {
  Server& server = servers_[number];
  server.phase = Phase::kOver;
  server.is_done = true;
  // Disconnecting makes the server open its port again, for the next driver.
  if (std::exchange(server.connected, false)) {
    effects_.add(LeaveServer{number});
  }
  if (std::ranges::all_of(servers_, &Server::is_done)) {
    effects_.add(PoolDone{});
  }
}

void ServerPool::fail(int exit_code, const std::string& sentence) {
  // The first failure determines the exit code; the ends that follow cause no restarts.
  policy_.stop(exit_code);
  effects_.add(FailRun{.exit_code = exit_code, .sentence = sentence});
}

void ServerPool::time(TimePoint now) {
  for (std::size_t number = 0; number < servers_.size(); ++number) {
    Server& server = servers_[number];
    if (!server.next_at || *server.next_at > now) {
      continue;
    }
    server.next_at.reset();
    // Three reasons for the same timer: dial again, restart the task, or reconnect first.
    if (server.phase == Phase::kReached) {
      effects_.add(DialServer{number});
    } else if (server.connected) {
      request_task(number, now);
    } else {
      reach(number, timeouts_.peer, now);
    }
  }
  if (now < next_beat_) {
    return;
  }
  // From now, not from the last beat: after a pause one heartbeat is enough.
  next_beat_ = now + kHeartbeatInterval;
  for (std::size_t number = 0; number < servers_.size(); ++number) {
    if (servers_[number].connected) {
      effects_.add(BeatServer{number});
    }
  }
}

void ServerPool::forgive(TimePoint::duration missed) {
  for (Server& server : servers_) {
    // Time in which this process was suspended does not count.
    server.until += missed;
  }
}

ServerPool::TimePoint ServerPool::deadline() const {
  TimePoint next = next_beat_;
  for (const Server& server : servers_) {
    next = std::min(next, server.next_at.value_or(next));
  }
  return next;
}

}  // namespace disttf::roles
