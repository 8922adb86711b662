// A ps as a process, the shell of roles/ps/core/ps_core.h: connections and their ids, the passage
// of time, and the effects that concern no range. The shell of one range is
// roles/ps/shell/range_server.h; what both need of the system is roles/ps/shell/ps_io.h.
#pragma once

#include <asio/awaitable.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "net/waiting/interrupt.h"
#include "roles/ps/core/ps_core.h"
#include "roles/ps/shell/ps_io.h"
#include "roles/ps/shell/range_server.h"
#include "run/process/note_limit.h"
#include "run/task.h"

namespace disttf::roles {

class ParameterServer {
 public:
  // Both must outlive it, and io.context() must not run any more. `threads`: how many may compute
  // an update.
  ParameterServer(const Task& task, std::size_t threads, PsIo& io);

  // --- for the process; on the thread of io.context()

  // Begins to watch the time.
  void start();
  // Answers a HELLO.
  [[nodiscard]] std::variant<net::Welcome, net::Refusal> welcome(const net::Hello& hello);
  // Serves a connection that was welcomed; returns when it has closed.
  asio::awaitable<void> serve(ConnectionPtr connection);
  // As PsCore::stop().
  void stop(ExitCode code, const std::string& signal);
  // An exception has left a coroutine: it ends the process with a sentence.
  void on_exception(const std::exception_ptr& exception);
  // Polls what trainers and other hosts have left in memory, for all ranges; sets the flag that
  // they see. See net::InPlaceMemory.
  bool poll() noexcept;
  void set_parked(bool parked) noexcept;
  // Copies a piece of a snapshot shard: small, so that arriving frames are handled first. Returns
  // false if there is nothing to copy.
  bool copy_snapshots();
  void publish_meters();

  // --- for the ranges served here

  [[nodiscard]] PsCore& core() noexcept { return core_; }
  [[nodiscard]] const PsCore& core() const noexcept { return core_; }
  [[nodiscard]] const Task& task() const noexcept { return task_; }
  [[nodiscard]] PsIo& io() noexcept { return io_; }
  void spawn(std::function<asio::awaitable<void>()> coroutine);  // exceptions reach on_exception()
  // The ids by which cores name connections. find() returns nullptr if the connection has gone.
  [[nodiscard]] ConnectionId add(const ConnectionPtr& connection);
  [[nodiscard]] net::FrameConnection* find(ConnectionId id) const;
  void remove(ConnectionId id) { connections_.erase(id); }
  // To be called when a frame's header or body has been handed to the core: if that completed a
  // step whose time is measured, the step ends now.
  void send_clock() {
    if (core_.awaits_clock()) {
      core_.clock(io_.now());
    }
  }
  // Carries out the core's effects; to be called after each call of the core.
  void do_effects();
  void apply(const CloseConnection& effect);
  void apply(RefuseConnection& effect);
  // Logs notes about trainers and other ps, rate-limited.
  void apply(const Note& effect) {
    if (std::optional<std::string> text = notes_.admit(effect.text, io_.now())) {
      io_.log({.level = effect.level, .text = *std::move(text)});
    }
  }
  void drain_at_end(const std::vector<ConnectionId>& ids);

 private:
  // Returns the server of the core's range `replica`. REQUIRES: the core has one.
  [[nodiscard]] RangeServer& range(std::size_t replica);
  asio::awaitable<void> watch();  // the passage of time

  void apply(const ClosePort& effect);
  void apply(const AwaitDrained& effect);
  void apply(const StayIdle& effect);
  void apply(const AnswerMetrics& effect);
  void apply(const SendTrace& effect);
  void apply(const EndProcess& effect);

  const Task& task_;  // constant
  PsIo& io_;
  PsCore core_;
  std::vector<std::unique_ptr<RangeServer>> ranges_;   // by the core's range number
  std::map<ConnectionId, ConnectionPtr> connections_;  // the connections being served
  ConnectionId last_id_ = 0;
  NoteLimit notes_;
  std::vector<ConnectionPtr> last_;  // to be drained before the process ends
};

}  // namespace disttf::roles
