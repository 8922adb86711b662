// Decides what a server serves: requests of any client, which it computes; or one driver, whose
// task it runs as a child process that owns the server's port meanwhile. The task ends when the
// channel of the driver's request breaks.
//
// A state machine. The caller passes in events and the time, and carries out effects(), emptying
// them, after each call. It calls time() at deadline(). Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/server_requests.h"
#include "run/effects.h"
#include "run/outcome.h"
#include "run/task.h"

namespace disttf::roles {

// Identifies a connection of the server. 0: none.
using ServerConnectionId = std::uint64_t;

// --- effects

// Accept connections on the server's port, including those that connected while a task owned the
// port and did not accept them.
struct OpenServerPort {};
struct CloseServerPort {};
// Start the task of the last request; then could_not_start(), or later task_ended().
struct StartRequestedTask {};
// Signal the task to end, and kill it if that does not help.
struct StopRequestedTask {};
struct SendToDriver {
  ServerConnectionId to = 0;
  net::FrameHeader header;
  std::vector<std::byte> body;
};
struct ServerLine {
  bool is_warning = false;
  std::string text;
};
// End the server, once the data for this connection (0: none) is sent.
struct EndServer {
  ServerConnectionId last = 0;
};

class ServerController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Effects = EffectQueue<OpenServerPort, CloseServerPort, StartRequestedTask,
                              StopRequestedTask, SendToDriver, ServerLine, EndServer>;

  // `task` must outlive it. Opens the port.
  explicit ServerController(const Task& task) : task_(task) { effects_.add(OpenServerPort{}); }

  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // A driver requests its task over this connection. nullopt: it is started.
  [[nodiscard]] std::optional<net::Refusal> requested(ServerConnectionId from,
                                                      const std::string& peer, TimePoint now);
  // Returns the refusal for the driver; then its connection is closed.
  [[nodiscard]] net::Refusal could_not_start(const std::string& why);
  void task_ended(const net::TaskEnd& end);
  void closed(ServerConnectionId id);
  // A signal ends the server.
  void stop();

  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const noexcept {
    return driver_ != 0 ? next_beat_ : TimePoint::max();
  }

  // Whether it is the driver's channel, on which a heartbeat timeout applies.
  [[nodiscard]] bool is_driver(ServerConnectionId id) const noexcept {
    return id != 0 && id == driver_;
  }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  [[nodiscard]] net::Refusal refusal(ExitCode code, const std::string& why) const;

  const Task& task_;
  ServerConnectionId driver_ = 0;
  bool task_runs_ = false;
  bool is_stop_requested_ = false;
  TimePoint next_beat_{};
  Effects effects_;
};

}  // namespace disttf::roles
