// Whom a server serves: anybody, whose orders it computes, or one driver, whose task it runs as a
// child process that has the server's port meanwhile. The channel on which the driver has ordered
// it is the driver's channel: the task ends with it.
//
// A state machine: it is told what has happened, and at what time; what it wants done it puts into
// effects(), which whoever calls it empties after each call. It wants to be called with time() at
// deadline(). Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "net/wire/frame.h"
#include "net/wire/handshake.h"
#include "net/wire/run_order.h"
#include "roles/run/effect_queue.h"
#include "roles/run/outcome.h"
#include "roles/run/task.h"

namespace disttf::roles {

// Names a connection of the server's. 0: none.
using ServerConnectionId = std::uint64_t;

// --- effects

// Wait for connections on the server's port: what has connected while the port was a task's, and
// nobody has accepted, is served now.
struct OpenServerPort {};
struct CloseServerPort {};
// The task, with the order that has just come; then could_not_start(), or later task_ended().
struct StartOrderedTask {};
// It is told to end, and killed where that does not help.
struct StopOrderedTask {};
struct SendToDriver {
  ServerConnectionId to = 0;
  net::FrameHeader header;
  std::vector<std::byte> body;
};
struct ServerLine {
  bool is_warning = false;
  std::string text;
};
// The server ends, once what was sent over this connection (0: none) has left.
struct EndServer {
  ServerConnectionId last = 0;
};

class ServerController {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Effects = EffectQueue<OpenServerPort, CloseServerPort, StartOrderedTask, StopOrderedTask,
                              SendToDriver, ServerLine, EndServer>;

  // `task` must outlive it. Opens the port.
  explicit ServerController(const Task& task) : task_(task) { effects_.add(OpenServerPort{}); }

  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello) const;
  // A driver orders its task, over this connection. nullopt: it is started.
  [[nodiscard]] std::optional<net::Refusal> ordered(ServerConnectionId from,
                                                    const std::string& peer, TimePoint now);
  // The refusal that the driver is to get; then its connection is closed.
  [[nodiscard]] net::Refusal could_not_start(const std::string& why);
  void task_ended(const net::TaskEnd& end);
  void closed(ServerConnectionId id);
  // A signal has told the server to end.
  void stop();

  void time(TimePoint now);
  [[nodiscard]] TimePoint deadline() const noexcept {
    return driver_ != 0 ? next_beat_ : TimePoint::max();
  }

  // The driver's channel: silence on it is its end.
  [[nodiscard]] bool is_driver(ServerConnectionId id) const noexcept {
    return id != 0 && id == driver_;
  }
  [[nodiscard]] Effects& effects() noexcept { return effects_; }

 private:
  [[nodiscard]] net::Refusal refusal(ExitCode code, const std::string& why) const;

  const Task& task_;
  ServerConnectionId driver_ = 0;
  bool task_runs_ = false;
  bool is_told_to_stop_ = false;
  TimePoint next_beat_{};
  Effects effects_;
};

}  // namespace disttf::roles
